"""How numbers and long names are written in tables, plots and progress bars."""

__all__ = ["format_probability", "shorten"]


def format_probability(value: float) -> str:
    """Write a probability to four digits, never as a certainty."""
    if value < 5e-5:
        return "<0.0001"
    if value >= 0.99995:
        return ">0.9999"
    return f"{value:.4f}"


def shorten(text: str, width: int) -> str:
    """Cut a text that is too long, and show that it was cut."""
    return text if len(text) <= width else text[: width - 1] + "…"

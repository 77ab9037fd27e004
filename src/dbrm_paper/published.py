"""The published numbers, as data. Nothing is corrected here.

Rows of Tables 1 to 3 and of Appendix A hold accuracy, FNR and FPR, each as median, minimum
and maximum over 100 runs; a dash stands for a method without randomness.
"""

from dataclasses import dataclass
from typing import final

__all__ = [
    "APPENDIX_B",
    "CLASSIFICATION",
    "COMPLEXITIES",
    "EPIGENETIC",
    "EXACT_MASS_G2",
    "KEPLER",
    "LOGIC",
    "MASS",
    "PrintedRow",
    "PrintedValue",
]


@final
@dataclass(frozen=True, slots=True)
class PrintedValue:
    """A median with minimum and maximum, where the paper prints them."""

    median: float
    minimum: float
    maximum: float
    text: str


@final
@dataclass(frozen=True, slots=True)
class PrintedRow:
    """One method of a table of Examples 1 to 3."""

    accuracy: PrintedValue
    fnr: PrintedValue
    fpr: PrintedValue


def _value(median: str, minimum: str, maximum: str) -> PrintedValue:
    if minimum == "-":
        return PrintedValue(float(median), float(median), float(median), median)
    text = f"{median} ({minimum}, {maximum})"
    return PrintedValue(float(median), float(minimum), float(maximum), text)


def _rows(text: str) -> dict[str, PrintedRow]:
    found = {}
    for line in text.strip().splitlines():
        method, *numbers = line.split()
        parts = [_value(*numbers[start : start + 3]) for start in (0, 3, 6)]
        found[method] = PrintedRow(*parts)
    return found


# Tables 1 to 3, and 8 to 10 (Appendix A: strategies 2, 3 and 4).
CLASSIFICATION = {
    "asteroids": _rows("""
LBRM       0.9999 0.9999 0.9999  0.0001 0.0001 0.0001  0.0002 0.0002 0.0002
DBRM_G_PAR 0.9998 0.9986 1.0000  0.0002 0.0001 0.0021  0.0000 0.0000 0.0000
DBRM_R_PAR 0.9998 0.9964 0.9999  0.0002 0.0001 0.0052  0.0000 0.0000 0.0000
DBRM_R     0.9998 0.9946 1.0000  0.0002 0.0001 0.0076  0.0002 0.0000 0.0056
DBRM_G     0.9998 0.9942 1.0000  0.0002 0.0001 0.0082  0.0002 0.0000 0.0072
LASSO      0.9991 - -  0.0013 - -  0.0000 - -
RIDGE      0.9982 - -  0.0026 - -  0.0000 - -
LXGBOOST   0.9980 0.9980 0.9980  0.0029 0.0029 0.0029  0.0000 0.0000 0.0000
LR         0.9963 - -  0.0054 - -  0.0000 - -
DEEPNETS   0.9728 0.8979 0.9979  0.0384 0.0018 0.1305  0.0000 0.0000 0.0153
TXGBOOST   0.8283 0.8283 0.8283  0.0005 0.0005 0.0005  0.3488 0.3488 0.3488
RFOREST    0.8150 0.6761 0.9991  0.1972 0.0003 0.3225  0.0162 0.0000 0.3557
NBAYES     0.6471 - -  0.0471 - -  0.4996 - -
DBRM_G_3   0.9998 0.9959 1.0000  0.0002 0.0001 0.0056  0.0002 0.0000 0.0042
DBRM_R_3   0.9998 0.9953 1.0000  0.0002 0.0001 0.0068  0.0002 0.0000 0.0070
DBRM_R_4   0.9998 0.9945 1.0000  0.0002 0.0001 0.0080  0.0002 0.0000 0.0069
DBRM_G_2   0.9998 0.9933 1.0000  0.0002 0.0001 0.0089  0.0002 0.0000 0.0048
DBRM_G_4   0.9998 0.9932 0.9999  0.0002 0.0001 0.0097  0.0002 0.0000 0.0042
DBRM_R_2   0.9998 0.9925 1.0000  0.0002 0.0001 0.0105  0.0002 0.0000 0.0032
"""),
    "breast-cancer": _rows("""
DBRM_R_PAR 0.9765 0.9695 0.9812  0.0479 0.0479 0.0479  0.0074 0.0000 0.0184
DBRM_G_PAR 0.9742 0.9695 0.9812  0.0479 0.0479 0.0536  0.0111 0.0000 0.0184
RIDGE      0.9742 - -  0.0592 - -  0.0037 - -
LBRM       0.9718 0.9648 0.9765  0.0592 0.0536 0.0702  0.0074 0.0000 0.0148
DBRM_G     0.9695 0.9554 0.9789  0.0536 0.0479 0.0809  0.0148 0.0037 0.0326
DEEPNETS   0.9695 0.9225 0.9789  0.0674 0.0305 0.1167  0.0074 0.0000 0.0949
DBRM_R     0.9671 0.9577 0.9812  0.0536 0.0479 0.0702  0.0148 0.0000 0.0361
LR         0.9671 - -  0.0479 - -  0.0220 - -
LASSO      0.9577 - -  0.0756 - -  0.0184 - -
LXGBOOST   0.9554 0.9554 0.9554  0.0809 0.0809 0.0809  0.0184 0.0184 0.0184
TXGBOOST   0.9531 0.9484 0.9601  0.0647 0.0536 0.0756  0.0326 0.0291 0.0361
RFOREST    0.9343 0.9038 0.9624  0.0914 0.0422 0.1675  0.0361 0.0000 0.1010
NBAYES     0.9272 - -  0.0305 - -  0.0887 - -
DBRM_G_3   0.9695 0.9507 0.9789  0.0536 0.0479 0.0862  0.0148 0.0000 0.0361
DBRM_R_2   0.9695 0.9554 0.9789  0.0536 0.0422 0.0756  0.0148 0.0000 0.0396
DBRM_R_4   0.9695 0.9577 0.9789  0.0536 0.0479 0.0756  0.0148 0.0000 0.0361
DBRM_R_3   0.9671 0.9577 0.9789  0.0536 0.0422 0.0756  0.0148 0.0037 0.0361
DBRM_G_4   0.9671 0.9577 0.9789  0.0536 0.0305 0.0756  0.0184 0.0000 0.0361
DBRM_G_2   0.9671 0.9531 0.9789  0.0536 0.0422 0.0862  0.0184 0.0000 0.0361
"""),
    "spam": _rows("""
TXGBOOST   0.9465 0.9442 0.9481  0.0783 0.0745 0.0821  0.0320 0.0294 0.0350
RFOREST    0.9328 0.9210 0.9413  0.0814 0.0573 0.1174  0.0484 0.0299 0.0825
DEEPNETS   0.9292 0.9002 0.9357  0.0846 0.0573 0.1465  0.0531 0.0310 0.0829
DBRM_R_PAR 0.9268 0.9162 0.9390  0.0897 0.0780 0.1057  0.0538 0.0415 0.0691
DBRM_G_PAR 0.9251 0.9139 0.9377  0.0897 0.0766 0.1024  0.0552 0.0445 0.0639
DBRM_G     0.9243 0.9113 0.9328  0.0927 0.0808 0.1116  0.0552 0.0465 0.0658
DBRM_R     0.9237 0.9106 0.9351  0.0917 0.0801 0.1116  0.0557 0.0474 0.0672
LR         0.9194 - -  0.0681 - -  0.0788 - -
LBRM       0.9178 0.9168 0.9188  0.1090 0.1064 0.1103  0.0528 0.0523 0.0538
LASSO      0.9171 - -  0.1077 - -  0.0548 - -
RIDGE      0.9152 - -  0.1288 - -  0.0415 - -
LXGBOOST   0.9139 0.9139 0.9139  0.1083 0.1083 0.1083  0.0591 0.0591 0.0591
NBAYES     0.7811 - -  0.0801 - -  0.2342 - -
DBRM_G_2   0.9243 0.9100 0.9357  0.0927 0.0780 0.1103  0.0545 0.0445 0.0686
DBRM_G_3   0.9237 0.9100 0.9321  0.0924 0.0766 0.1122  0.0548 0.0474 0.0714
DBRM_G_4   0.9237 0.9113 0.9315  0.0931 0.0821 0.1077  0.0562 0.0470 0.0714
DBRM_R_3   0.9240 0.9132 0.9334  0.0951 0.0752 0.1155  0.0552 0.0465 0.0672
DBRM_R_2   0.9240 0.9132 0.9321  0.0917 0.0801 0.1142  0.0550 0.0465 0.0676
DBRM_R_4   0.9237 0.9109 0.9341  0.0931 0.0787 0.1096  0.0562 0.0455 0.0686
"""),
}

_COLUMNS = ("DBRM_G", "DBRM_R", "DBRM_G_PAR", "DBRM_R_PAR", "LBRM")


def _counts(text: str) -> dict[str, dict[str, float]]:
    """Mean number of features, by complexity and method."""
    found = {}
    for line in text.strip().splitlines():
        complexity, *numbers = line.split()
        found[complexity] = dict(zip(_COLUMNS, map(float, numbers), strict=True))
    return found


# Table 4: features with inclusion above 0.1, by complexity; 10 stands for 10 and more.
COMPLEXITIES = {
    "asteroids": _counts("""
1 8.96 8.97 9.00 9.00 9.00
2 2.58 2.62 0.05 0.15 0.00
Total 11.54 11.59 9.05 9.15 9.00
"""),
    "breast-cancer": _counts("""
1 11.30 11.73 14.20 10.79 29.83
2 3.09 3.06 0.04 0.21 0.00
3 0.30 0.00 0.00 0.00 0.00
6 0.00 0.01 0.00 0.00 0.00
7 0.00 0.01 0.00 0.00 0.00
Total 14.42 14.81 14.24 11.00 29.83
"""),
    "spam": _counts("""
1 36.34 36.09 39.87 39.17 49.83
2 14.45 14.83 21.47 22.43 0.00
3 2.83 3.17 5.24 5.81 0.00
4 0.69 0.57 1.36 1.36 0.00
5 1.15 1.09 1.56 1.68 0.00
6 0.92 0.74 1.24 1.07 0.00
7 0.37 0.40 0.57 0.42 0.00
8 0.25 0.22 0.33 0.17 0.00
9 0.04 0.08 0.16 0.11 0.00
10 0.15 0.11 0.11 0.18 0.00
Total 57.19 57.30 71.91 72.40 49.83
"""),
}

# Table 5: power, FP, FDR by transform set, method and chains.
MASS = {
    ("paper-g1", "DBRM_G", 16): ("1.00", "0.00", "0.00"),
    ("paper-g1", "DBRM_G", 4): ("0.79", "0.40", "0.21"),
    ("paper-g1", "DBRM_G", 1): ("0.42", "1.21", "0.58"),
    ("paper-g1", "DBRM_R", 16): ("0.97", "0.06", "0.03"),
    ("paper-g1", "DBRM_R", 4): ("0.61", "0.73", "0.39"),
    ("paper-g1", "DBRM_R", 1): ("0.33", "1.63", "0.67"),
    ("paper-g2", "DBRM_G", 16): ("0.93", "0.36", "0.215"),
    ("paper-g2", "DBRM_G", 4): ("0.69", "0.49", "0.34"),
    ("paper-g2", "DBRM_G", 1): ("0.42", "1.25", "0.58"),
    ("paper-g2", "DBRM_R", 16): ("0.94", "0.29", "0.175"),
    ("paper-g2", "DBRM_R", 4): ("0.63", "0.64", "0.375"),
    ("paper-g2", "DBRM_R", 1): ("0.29", "1.54", "0.71"),
}

# Table 6: runs in 100 that found F1, F2, F3; power, FP, FDR.
KEPLER = {
    ("paper-g1", "DBRM_G", 64): ("81", "71", "1", "1.00", "0.02", "0.01"),
    ("paper-g1", "DBRM_G", 16): ("34", "41", "32", "0.84", "0.46", "0.18"),
    ("paper-g1", "DBRM_G", 1): ("6", "5", "3", "0.141", "0.65", "0.86"),
    ("paper-g1", "DBRM_R", 64): ("78", "75", "2", "0.99", "0.03", "0.01"),
    ("paper-g1", "DBRM_R", 16): ("31", "38", "18", "0.79", "0.68", "0.25"),
    ("paper-g1", "DBRM_R", 1): ("6", "4", "2", "0.12", "1.81", "0.88"),
    ("paper-g2", "DBRM_G", 64): ("72", "71", "3", "0.99", "0.04", "0.015"),
    ("paper-g2", "DBRM_G", 16): ("39", "42", "13", "0.83", "0.55", "0.22"),
    ("paper-g2", "DBRM_G", 1): ("7", "4", "3", "0.14", "1.81", "0.86"),
    ("paper-g2", "DBRM_R", 64): ("70", "68", "9", "1.00", "0.04", "0.02"),
    ("paper-g2", "DBRM_R", 16): ("24", "27", "16", "0.65", "0.88", "0.39"),
    ("paper-g2", "DBRM_R", 1): ("2", "2", "2", "0.06", "2.14", "0.94"),
}

# Exact inclusion probabilities for the mass under the scripts' criterion with G2, over all
# models of total complexity at most four (tests/statistical/test_exact_laws.py): R^3 rho
# and |R|^3.5 rho.
EXACT_MASS_G2 = (0.137, 0.774)

# Appendix B: the five most frequent features of each setting, in 100 runs.
APPENDIX_B = {
    "1": (("x3", 99), ("x3*x3", 98), ("x3*x10", 93), ("x3*x3*x10", 4), ("x9*x3", 1)),
    "2": (
        ("x3", 100),
        ("sigmoid(-10.33+0.24*x4-8.83*x8)", 72),
        ("x10", 64),
        ("x2", 62),
        ("sigmoid(0.21+0.01*x3+0.20*x7)", 16),
    ),
    "3": (("x3", 100), ("x2", 54), ("sigmoid(-16.91-4.94*x2)", 21), ("x9", 19), ("x5", 16)),
}

# Example 6: power of each tree, overall power, FP, FDR.
LOGIC = {
    "DBRM_G": (
        "1.0000",
        "1.0000",
        "1.0000",
        "1.0000",
        "1.0000",
        "1.0000",
        "0.9900",
        "0.9800",
        "0.9963",
        "0.5100",
        "0.0601",
    ),
    "DBRM_R": (
        "1.0000",
        "1.0000",
        "0.9600",
        "1.0000",
        "1.0000",
        "1.0000",
        "0.9200",
        "0.8900",
        "0.9712",
        "1.1400",
        "0.1279",
    ),
    "LOGIC": (
        "0.9900",
        "1.0000",
        "1.0000",
        "0.9600",
        "1.0000",
        "0.9900",
        "0.9100",
        "0.3800",
        "0.9038",
        "1.0900",
        "0.1310",
    ),
}

# Example 7: everything with posterior probability above 0.25.
EPIGENETIC = {"offset(log(total_bases))": 1.0, "CG": 0.999, "CHG": 0.952, "RW(1)": 1.0}

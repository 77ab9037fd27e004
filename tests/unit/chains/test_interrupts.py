"""Tests of Ctrl-C and SIGTERM: what there is comes back, and a second one is as always."""

import os
import signal
import tempfile
import threading
import time

import pytest

import dbrm
from dbrm.chains import run_chains
from dbrm.errors import DBRMWarning

LONG = {"n_populations": 100_000, "n_chains": 3}


@pytest.fixture
def send():
    """Send a signal to this process after a while; the rest is cancelled at the end."""
    timers = []

    def send(number, seconds):
        timers.append(threading.Timer(seconds, os.kill, (os.getpid(), number)))
        timers[-1].start()

    yield send
    for timer in timers:
        timer.cancel()
        timer.join()


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_what_there_is_comes_back(name, data, settings, send):
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    send(getattr(signal, name), 1.0)
    with pytest.warns(DBRMWarning, match=rf"Interrupted \({name}\): 0 of 3 chains had finished"):
        posterior = dbrm.fit(*data, **settings | LONG)
    assert posterior.record.ended == name
    assert posterior.record.n_finished == 0
    assert len(posterior.models) > 10
    assert f"interrupted ({name}): 0 of 1 chains" in posterior.summary()
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_with_workers_too(data, settings, tmp_path, monkeypatch):
    """Both are at work on a chain without end when the signal comes."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def interrupt():
        while len(list(tmp_path.glob("dbrm-*/running-*"))) < 2:
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.warns(DBRMWarning, match=r"Interrupted \(SIGINT\): 0 of 3 chains had finished, 2"):
        posterior = dbrm.fit(*data, **settings | LONG, n_jobs=2)
    thread.join()
    assert posterior.record.n_chains == 2


def test_an_interrupted_run_resumes_to_the_same_end(data, settings, whole, same, send, tmp_path):
    """However far it got."""
    calls = []

    def interrupt_later(progress, chain, glimpse):
        calls.append(chain)
        if len(calls) == 5:
            os.kill(os.getpid(), signal.SIGINT)

    options = settings | {"checkpoint": tmp_path}
    patch = pytest.MonkeyPatch()
    with patch.context() as context:
        context.setattr("dbrm.chains.run._Driver._tell", interrupt_later)
        context.setattr("dbrm.chains.run._SHORTEST", 0.0)
        context.setattr("dbrm.chains.run._WRITING_SHARE", 0.0)
        with pytest.warns(DBRMWarning, match="Interrupted"):
            part = dbrm.fit(*data, **options)
    assert part.record.n_evaluated < whole.record.n_evaluated
    same(dbrm.resume(tmp_path), whole)


def test_a_second_interrupt_is_as_always(whole, rng):
    problem = whole._problem
    seen = []

    def progress(chain, glimpse):
        seen.append(chain)
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    sequence = rng.bit_generator.seed_seq
    with pytest.raises(KeyboardInterrupt):
        run_chains(problem, 1, sequence, [].append, progress=progress)
    assert len(seen) == 1


def test_outside_the_main_thread_signals_are_left_alone(data, settings, whole, same):
    found = []
    thread = threading.Thread(target=lambda: found.append(dbrm.fit(*data, **settings)))
    thread.start()
    thread.join()
    same(found[0], whole)

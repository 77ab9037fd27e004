"""Tests of signals: Ctrl-C gives what there is, SIGTERM ends the process, two end a loop."""

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial

import pytest

import dbrm
from dbrm.chains import interrupts, run_chains
from dbrm.errors import DBRMWarning, Terminated
from dbrm.run import runner

pytestmark = pytest.mark.posix
LONG = {"n_populations": 100_000, "n_chains": 3, "patience": None}


@pytest.fixture(autouse=True)
def long_ago(monkeypatch):
    """The tests before this one did not interrupt anything."""
    monkeypatch.setattr(interrupts, "_last_interrupt", -10.0)


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


@pytest.fixture
def handlers():
    """Install handlers; those of before are there again at the end."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield signal.signal
    for number, handler in before.items():
        signal.signal(number, handler)


def test_what_there_is_comes_back(data, settings, send):
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    send(signal.SIGINT, 1.0)
    with pytest.warns(DBRMWarning, match=r"Interrupted \(SIGINT\): 0 of 3 chains had finished"):
        posterior = dbrm.fit(*data, **settings | LONG)
    assert posterior.record.ended == "SIGINT"
    assert posterior.record.n_finished == 0
    assert len(posterior.models) > 10
    assert "was interrupted. It was stopped (SIGINT) when 0 of 1 chains" in posterior.summary()
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_sigterm_raises_what_ends_the_process(data, settings, send):
    before = signal.getsignal(signal.SIGTERM)
    send(signal.SIGTERM, 1.0)
    with pytest.raises(Terminated) as ended:
        dbrm.fit(*data, **settings | LONG)
    assert isinstance(ended.value, SystemExit)
    assert ended.value.code == 143
    assert ended.value.posterior.record.ended == "SIGTERM"
    assert len(ended.value.posterior.models) > 10
    assert signal.getsignal(signal.SIGTERM) == before
    assert pickle.loads(pickle.dumps(ended.value)).posterior is None  # noqa: S301


def test_a_handler_of_the_user_decides(data, settings, send, handlers, tmp_path):
    """It hears of SIGTERM once the state is on the disk; if it returns, so does the search."""
    heard = []

    def hear(number, frame):
        heard.append((number, sorted(path.name for path in tmp_path.glob("chain-*"))))

    handlers(signal.SIGTERM, hear)
    send(signal.SIGTERM, 1.0)
    with pytest.warns(DBRMWarning, match=r"Interrupted \(SIGTERM\): 0 of 3 chains had finished"):
        posterior = dbrm.fit(*data, **settings | LONG, checkpoint=tmp_path)
    assert posterior.record.ended == "SIGTERM"
    assert [number for number, _ in heard] == [signal.SIGTERM]
    assert "chain-00000.a.dbrm" in heard[0][1]


def test_signals_that_are_ignored_stay_ignored(data, settings, whole, same, handlers):
    for number in (signal.SIGINT, signal.SIGTERM):
        handlers(number, signal.SIG_IGN)

    def interrupt(chain, chain_progress):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)

    patch = pytest.MonkeyPatch()
    with patch.context() as context:
        context.setattr("dbrm.chains.driver._Driver._notify", lambda _, *told: interrupt(*told))
        same(dbrm.fit(*data, **settings), whole)


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")
def test_a_forked_worker_dies_of_sigterm_alone():
    """It inherits the handlers of the search, and is not the search."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()

    def work():
        there.send("ready")
        time.sleep(30)

    with interrupts.catch_interrupts() as sign:
        worker = context.Process(target=work)
        worker.start()
        assert here.recv() == "ready"
        os.kill(worker.pid, signal.SIGINT)
        os.kill(worker.pid, signal.SIGTERM)
        worker.join(20)
        assert worker.exitcode == -signal.SIGTERM
        assert os.listdir(sign.folder) == []


LOOP = """
import sys
import numpy as np
import dbrm
from dbrm.chains import interrupts

# Two seconds may be over before a busy machine is in the next fit.
interrupts._AGAIN = 30.0
draw = np.random.default_rng(1)
X, y = draw.normal(size=(60, 3)), draw.normal(size=60)
options = {"n_chains": 1, "n_populations": 1_000_000, "sweep": 0}
for number in range(100):
    print(number, flush=True)
    try:
        dbrm.fit(X, y, **options, checkpoint=f"{sys.argv[1]}/{number}")
    except Exception as error:
        print(error)
"""


@pytest.fixture
def loop(tmp_path):
    """A program that fits in a loop and goes on after errors: signals, each in the next fit."""
    command = [sys.executable, "-W", "ignore", "-c", LOOP, tmp_path]

    def loop(*signals):
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
            try:
                for fit, number in enumerate(signals):
                    while not list(tmp_path.glob(f"{fit}/chain-*")):
                        assert program.poll() is None, program.stderr.read()
                        time.sleep(0.005)
                    program.send_signal(number)
                printed, told = program.communicate(timeout=60)
            finally:
                program.kill()
        return program.returncode, printed.decode().split(), told.decode()

    return loop


@pytest.mark.slow
def test_sigterm_ends_a_loop_over_fits(loop):
    assert loop(signal.SIGTERM) == (143, ["0"], "")


@pytest.mark.slow
def test_two_interrupts_end_a_loop_over_fits(loop):
    """The first ends one fit, the second, within two seconds, comes in the next."""
    code, printed, told = loop(signal.SIGINT, signal.SIGINT)
    assert code == -signal.SIGINT
    assert printed == ["0", "1"]
    assert "KeyboardInterrupt" in told


@pytest.mark.parametrize("sweep", ["sweep_features", "sweep_projections"])
def test_during_the_sweep_too(sweep, data, settings, monkeypatch, tmp_path, same):
    """What it found until then is in the posterior; resumed, the run is the whole one."""
    options = settings | {"sweep": 3, "sweep_projections": True, "n_populations": 4}
    options |= {"n_chains": 2, "penalty": 1.0, "transforms": ["sin", "square"]}
    with monkeypatch.context() as patch:
        interrupted = interrupt_when_asked(2)
        original = getattr(runner, sweep)
        patch.setattr(f"dbrm.run.runner.{sweep}", partial(interrupted, original))
        with pytest.warns(DBRMWarning, match=r"\(SIGINT\): 0 of 2 chains had finished, 1 had"):
            posterior = dbrm.fit(*data, **options, checkpoint=tmp_path / "run")
    assert posterior._problem.pool
    assert posterior.record.ended == "SIGINT"
    assert len(posterior.models) > 1
    assert not list((tmp_path / "run").glob("chain-*"))
    whole = dbrm.fit(*data, **options)
    assert len(posterior._problem.pool) < len(whole._problem.pool)
    same(dbrm.resume(tmp_path / "run"), whole)


def interrupt_when_asked(count):
    """A sweep that is interrupted when it asks for the so manieth time whether to stop."""

    def interrupted(sweep, *arguments):
        problem, given, pause, *rest = arguments
        asked = []

        def ask():
            asked.append(None)
            if len(asked) == count:
                os.kill(os.getpid(), signal.SIGINT)
            return pause()

        return sweep(problem, given, ask, *rest)

    return interrupted


def test_sigterm_during_the_sweep_leaves_a_run_to_resume(
    data, settings, whole, same, monkeypatch, tmp_path
):
    def sweep(*arguments):
        os.kill(os.getpid(), signal.SIGTERM)
        return []

    with monkeypatch.context() as patch:
        patch.setattr("dbrm.run.runner.sweep_features", sweep)
        with pytest.raises(Terminated) as ended:
            dbrm.fit(*data, **settings, checkpoint=tmp_path)
    assert ended.value.posterior is None
    same(dbrm.resume(tmp_path), whole)


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

    def interrupt_later(progress, chain, chain_progress):
        calls.append(chain)
        if len(calls) == 5:
            os.kill(os.getpid(), signal.SIGINT)

    options = settings | {"checkpoint": tmp_path}
    patch = pytest.MonkeyPatch()
    with patch.context() as context:
        context.setattr("dbrm.chains.driver._Driver._notify", interrupt_later)
        context.setattr("dbrm.chains.driver._SHORTEST", 0.0)
        context.setattr("dbrm.chains.driver._WRITING_SHARE", 0.0)
        with pytest.warns(DBRMWarning, match="Interrupted"):
            part = dbrm.fit(*data, **options)
    assert part.record.n_evaluated < whole.record.n_evaluated
    same(dbrm.resume(tmp_path), whole)


def test_a_second_interrupt_is_as_always(whole, rng):
    problem = whole._problem
    seen = []

    def progress(chain, chain_progress):
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

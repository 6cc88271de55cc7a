"""A slice of the random fault schedules."""

import schedules


def test_jobs_under_random_faults_end_correctly(tmp_path):
    lines = []
    wrong = schedules.run(1, 20, 3, tmp_path, lines.append)
    assert not wrong, "\n".join(lines)

"""A started `paceline page`, and its client."""

import http.client
import re
import signal

DEADLINE_S = 60


class Page:
    def __init__(self, cli, *args):
        self.process = cli.start("page", *args)
        self.url = self.process.stdout.readline().decode().strip()
        found = re.fullmatch(
            r"http://127\.0\.0\.1:(\d+)(/\?token=[0-9a-f]{64})", self.url)
        assert found, self.url
        self.port, self.way_in = int(found[1]), found[2]
        self.cookie = None

    def get(self, path, method="GET", **headers):
        """The answer and its body."""
        peer = http.client.HTTPConnection("127.0.0.1", self.port,
                                          timeout=DEADLINE_S)
        if self.cookie:
            headers.setdefault("Cookie", self.cookie)
        peer.request(method, path, headers=headers)
        answer = peer.getresponse()
        body = answer.read().decode()
        peer.close()
        return answer, body

    def enter(self):
        """Exchange the token for the cookie."""
        answer, _ = self.get(self.way_in)
        assert answer.status == 303 and answer.headers["Location"] == "/"
        cookie = answer.headers["Set-Cookie"]
        assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
        self.cookie = cookie.split(";")[0]

    def end(self):
        """Ctrl-C; what it said on standard error."""
        self.process.send_signal(signal.SIGINT)
        said = self.process.communicate(timeout=DEADLINE_S)[1].decode()
        assert self.process.returncode == 0, said
        return said

    def close(self):
        self.process.kill()
        self.process.communicate()

"""The strict peer against itself on loopback: files, texts, and every status."""

import os
import threading
import time

import sender
from case import Case, directory, mine
from log import Log


class ExchangeTests(Case):
    def test_files_arrive(self):
        with open(f"{directory}/day one/b.bin", "rb") as file:
            content = file.read()
        for options in ({}, {"checksums": True, "parallel": 2}, {"with_length": True}):
            with self.subTest(options):
                self.assertTrue(self.exchange(items=sender.Item.below(directory), **options))
        with open(f"{self.out}/holiday/day one/b.bin", "rb") as file:
            self.assertEqual(file.read(), content)
        self.assertEqual(os.path.getsize(f"{self.out}/holiday/empty"), 0)
        self.clean()

    def test_text(self):
        self.assertTrue(self.exchange(items=[sender.Item.text("grüezi")]))
        self.assertEqual(self.heard.named("offered")[0]["text"], "grüezi")
        self.assertTrue(self.exchange({"text": "200"}, [sender.Item.text("grüezi")]))
        self.assertEqual(self.statuses("prepare-upload"), [204, 200])
        self.clean()

    def test_some_files(self):
        self.assertFalse(self.exchange({"only": ("holiday/a.txt",)}, sender.Item.below(directory)))
        self.assertEqual(self.said.named("accepted")[0]["files"], ["holiday/a.txt"])
        self.heard.wait("finished")
        self.clean()

    def test_without_a_certificate(self):
        for asking in ("optional", "none"):
            self.assertTrue(self.exchange({"asking": asking}, identity=None))
        self.clean()
        self.assertFalse(self.exchange(identity=None))
        self.assertEqual(self.heard.wait("violation")[0]["rule"], "certificate-missing")

    def test_statuses_of_offers(self):
        for serving, options, expected in (
                ({"answer": "none"}, {}, 204), ({"answer": "reject"}, {}, 403), ({"answer": "busy"}, {}, 409),
                ({"space": 10}, {}, 507), ({"prepare_status": 500}, {}, 500), ({"prepare_status": 429}, {}, 429),
                ({"pin": "123456"}, {}, 401), ({"pin": "123456"}, {"pin": "654321"}, 401),
                ({"pin": "123456"}, {"pin": "123456"}, 200)):
            with self.subTest(serving):
                self.exchange(serving, **options)
                self.assertEqual(self.statuses("prepare-upload")[-1], expected)
        self.clean()

    def test_the_fourth_wrong_pin(self):
        server = self.serve(pin="123456")
        for pin in ("1", "2", None, "3", "123456"):
            self.sender(server, pin=pin).send([sender.Item.text("a")])
        self.assertEqual(self.statuses("prepare-upload"), [401, 401, 401, 401, 429])
        self.clean()

    def test_statuses_of_uploads(self):
        for serving, expected, delivered in (
                ({"bad_checksums": 1}, [422, 200], True), ({"bad_checksums": 3}, [422] * 3, False),
                ({"upload_status": 507}, [507], False), ({"upload_status": 500}, [500], False)):
            with self.subTest(serving):
                self.said = Log()
                self.assertEqual(self.exchange(serving), delivered)
                self.assertEqual(self.statuses("upload"), expected)
        self.clean()

    def test_busy_while_a_person_decides(self):
        server = self.serve(wait=0.5)
        threading.Thread(target=self.sender(server).send, args=([sender.Item.text("a")],)).start()
        self.heard.wait("offered")
        self.assertFalse(self.sender(server).send([sender.Item.text("b")]))
        self.said.wait("answer", 2)
        self.assertEqual(self.statuses("prepare-upload"), [409, 204])
        self.clean()

    def test_information(self):
        making = self.sender(self.serve())
        for version in ("v1", "v2"):
            self.assertEqual(making.info(version)["fingerprint"], mine.fingerprint)
        self.assertEqual(making.register()["alias"], "Strict Peer")
        self.assertEqual(self.heard.named("registered")[0]["port"], making.options.port)
        self.clean()

    def test_another_certificate(self):
        server = self.serve(other_after=0)
        self.heard.wait("other-certificate")
        self.assertFalse(self.sender(server).send([sender.Item.text("a")]))
        self.said.wait("other-certificate")
        self.assertEqual(self.heard.named("offered"), [])


class EndTests(Case):
    def test_withdrawn(self):
        self.assertFalse(self.exchange({"wait": 5}, hang_up=0.1))
        self.heard.wait("withdrawn")
        self.assertFalse(self.exchange({"wait": 5}, cancel_waiting=0.1))
        self.assertEqual(self.statuses("prepare-upload"), [403])
        self.clean()

    def test_cancelled_within_a_file(self):
        self.assertFalse(self.exchange(items=list(reversed(sender.Item.below(directory))), cancel_after=100_000))
        self.assertEqual(self.heard.wait("cancelled")[0]["by"], "sender")
        # The end of its only file ends a session, before the cancel arrives.
        self.assertFalse(self.exchange(cancel_after=100_000))
        self.heard.wait("cancelled-nothing")
        self.clean()
        self.assertFalse(self.exchange({"cancel_after": 100_000}, rate=600_000))
        self.assertEqual(self.said.named("cancelled")[-1]["by"], "receiver")
        self.heard.wait("aborted", 2)
        self.clean()

    def test_cut(self):
        self.assertFalse(self.exchange({"cut_after": 100_000}))
        self.assertFalse(self.exchange({"answer": "hang-up"}))
        self.said.wait("unreachable", 2)
        self.assertFalse(self.exchange(die_after=100_000))
        self.heard.wait("aborted", 2)
        self.assertEqual(os.listdir(self.out), [])
        self.clean()

    def test_slow(self):
        began = time.monotonic()
        self.assertTrue(self.exchange({"rate": 1_500_000}, rate=1_500_000, stall_after=100_000, stall=0.1))
        self.assertGreater(time.monotonic() - began, 0.2)
        self.clean()

"""The last of the tests: each rule was broken by one of them."""

import unittest

from case import broken
from rules import RULES


class RulesTests(unittest.TestCase):
    def test_every_rule_is_broken_once(self):
        self.assertEqual(RULES.keys() - broken, set())

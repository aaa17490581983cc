import Testing

/// The attacks of `threats.txt` on the real program: one daemon a test, one test at a time, since it is memory and time that are looked at.
@Suite(.serialized, .timeLimit(.minutes(10))) enum HostileTests {}

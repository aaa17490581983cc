import Testing

/// The attacks of `threats.txt` on the real program. Each test has its own daemon, and tests run one at a time, because they measure memory
/// and time.
@Suite(.serialized, .timeLimit(.minutes(10))) enum HostileTests {}

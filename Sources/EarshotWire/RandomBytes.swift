extension [UInt8] {
    /// Returns unpredictable bytes from the kernel's generator (getrandom(2)).
    package static func random(count: Int) -> Self {
        var generator = SystemRandomNumberGenerator()
        return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
    }
}

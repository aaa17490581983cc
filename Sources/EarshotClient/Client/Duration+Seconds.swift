extension Duration {
    /// The duration in seconds, as the API has it in JSON.
    package var seconds: Double { self / .seconds(1) }

    /// The duration in whole seconds, rounded up, 0 or more.
    package var wholeSeconds: UInt64 {
        UInt64(clamping: self.components.seconds) + (self.components.seconds >= 0 && self.components.attoseconds > 0 ? 1 : 0)
    }
}

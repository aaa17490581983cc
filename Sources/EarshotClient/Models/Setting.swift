extension ControlAPI {
    /// The answer of `GET /v1/settings`: the values with which the daemon runs.
    public struct SettingList: Codable, Hashable, Sendable {
        /// The absolute path of the settings file, whether or not it exists. The drop-ins are in the directory of the same name with `.d`.
        public let configuration: String?
        /// All settings, in the order of the settings file, then the pairs of `[discovery.info]`.
        @ReadableElements public var settings: [Setting]

        /// Creates a value from its parts.
        public init(configuration: String?, settings: [Setting]) {
            self.configuration = configuration
            self._settings = ReadableElements(settings)
        }
    }

    /// A setting with its value and the place of that value.
    public struct Setting: Codable, Hashable, Sendable {
        /// The kind of place that sets a value.
        public enum Source: String, Hashable, Sendable, CaseIterable {
            /// The built-in default.
            case `default`
            /// A packaged systemd unit.
            case unit
            /// The settings file or a drop-in.
            case file
            /// An environment variable of the daemon.
            case environment
            /// An option on the daemon's command line.
            case option
        }

        /// The key with its section, such as `peer.name`.
        public let key: String
        /// The value, as the settings file spells it; empty if there is none, and `(hidden)` for a secret.
        public let value: String
        /// The kind of place that sets the value.
        public let source: Tolerant<Source>
        /// The place of the value, such as `/etc/earshot/earshotd.conf:3`; `nil` for a default.
        public let place: String?
        /// The words that the key accepts; empty if it accepts other values.
        @ReadableElements public var choices: [String]
        /// Whether a change takes effect only after a restart of the daemon.
        public let needsRestart: Bool
        /// The value after a restart of the daemon, if another one is set now.
        public let next: String?

        /// Creates a value from its parts.
        public init(
            key: String, value: String, source: Tolerant<Source>, place: String? = nil, choices: [String], needsRestart: Bool,
            next: String? = nil
        ) {
            self.key = key
            self.value = value
            self.source = source
            self.place = place
            self._choices = ReadableElements(choices)
            self.needsRestart = needsRestart
            self.next = next
        }

        private enum CodingKeys: String, CodingKey {
            case key, value, source, place, choices
            case needsRestart = "needs_restart"
            case next
        }
    }

    /// The answer of `POST /v1/settings/reload`: the changed settings.
    public struct SettingsReload: Codable, Hashable, Sendable {
        /// The settings that differ from those with which the daemon ran, such as `peer.name`.
        @ReadableElements public var changed: [String]
        /// The changed settings that take effect after a restart of the daemon.
        @ReadableElements public var needsRestart: [String]

        /// Creates a value from its parts.
        public init(changed: [String], needsRestart: [String]) {
            self._changed = ReadableElements(changed)
            self._needsRestart = ReadableElements(needsRestart)
        }

        private enum CodingKeys: String, CodingKey {
            case changed
            case needsRestart = "needs_restart"
        }
    }
}

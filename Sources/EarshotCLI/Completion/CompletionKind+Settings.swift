import ArgumentParser
import EarshotClient

/// Completion of settings, from the daemon or, without one, from the settings files.
extension CompletionKind {
    /// The keys of settings.
    static var settingKey: CompletionKind { .settings { _ in nil } }

    /// A key, and behind a key the words that it accepts.
    static var setting: CompletionKind {
        .settings { words in words.count.isMultiple(of: 2) ? nil : words.last }
    }

    /// `key` returns the key whose words are offered, by the arguments of the command that precede the cursor; `nil` to offer keys.
    private static func settings(_ key: @escaping @Sendable ([String]) -> String?) -> CompletionKind {
        .custom { line, index, _ in
            Self.limitTime()
            let before = index >= 0 ? line.prefix(index) : line.dropLast()
            var options = GlobalOptions()
            options.socket = CompletionLine.socket(in: line)
            options.json = false
            guard let place = try? await SettingsPlace.find(CompletionLine.value(of: "--config", in: line), options) else { return [] }
            let arguments = CompletionLine.arguments(behind: ["config", "set"], in: Array(before))
            let words = CompletionSource.words(for: key(arguments), of: place.settings.value)
            return words.map { $0.line(for: CompletionShell.requesting) }
        }
    }
}

extension CompletionSource {
    /// The words that a key accepts, or all keys.
    static func words(for key: String?, of list: ControlAPI.SettingList) -> [CompletionWord] {
        guard let key else {
            return list.settings.map { CompletionWord($0.key, typedID: $0.key, isClear: true, note: $0.source.rawValue) }
        }
        return list.setting(key)?.choices.map { CompletionWord($0, typedID: $0, isClear: true, note: "value") } ?? []
    }
}

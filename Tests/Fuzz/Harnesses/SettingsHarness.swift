import Earshot
import EarshotSafety
import EarshotWire

/// The settings parser: the input is a settings file.
///
/// Any input gives settings or an error of one line. Parsed entries that are written out again are parsed to the same entries.
enum SettingsHarness: Harness {
    static func run(_ input: [UInt8]) {
        do throws(SettingsError) {
            let file = try INIFile(bytes: input, path: "f")
            self.checkRoundTrip(of: file)
            var layers = SettingLayers()
            try layers.readFile(file, path: "f")
            let settings = try Settings(layers, hostName: "host")
            demand(settings.node.reserve >= 0 && settings.node.reserve < 1, "a share is a share")
            demand((1...63).contains(settings.node.displayName.description.utf8.count), "a name has a name's length")
        } catch {
            let text = error.description
            demand(!text.unicodeScalars.contains { $0.properties.generalCategory == .control }, "an error is one line")
            demand(text.utf8.count < 2048, "an error is of bearable length")
            demand(error.exitCode == 78, "a file that is wrong is wrong configuration")
        }
    }

    private static func checkRoundTrip(of file: INIFile) {
        var text = ""
        for entry in file.entries {
            // A value that contains a quote was not in quotes, and needs none.
            let value = entry.value.utf8.contains(UInt8(ascii: "\"")) ? entry.value : "\"\(entry.value)\""
            text += "[\(entry.section)]\n\(entry.key)=\(value)\n"
        }
        guard text.utf8.count <= INIFile.byteLimit else { return }
        do throws(SettingsError) {
            let again = try INIFile(bytes: Array(text.utf8), path: "f")
            demand(
                again.entries.map { [$0.section, $0.key, $0.value] } == file.entries.map { [$0.section, $0.key, $0.value] },
                "what is written out reads the same")
        } catch {
            demand(false, "what is written out can be read: \(error)")
        }
    }
}

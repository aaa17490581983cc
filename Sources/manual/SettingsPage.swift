/// earshotd.conf(5): its article, with the settings from `Config/earshotd.conf`.
enum SettingsPage {
    static func write(_ file: SettingsFile, _ article: Article, to page: inout Mdoc) {
        for section in article.sections {
            page.section(section) { name in name == "settings" ? Self.settings(file) : nil }
        }
    }

    /// Every key with its default and its comment, by section.
    private static func settings(_ file: SettingsFile) -> String {
        var list = Mdoc()
        for section in file.sections {
            list.raw(".Ss \"[\(section.name)]\"")
            list.text(section.comment)
            guard !section.keys.isEmpty else { continue }
            list.raw(".Bl -tag -width Ds")
            for key in section.keys {
                list.raw(".It Va \(Mdoc.word(key.name)) No = Ar \(key.value.isEmpty ? "\\&" : Mdoc.word(key.value))")
                list.text(key.comment)
            }
            list.raw(".El")
        }
        return String(list.text.dropLast())
    }
}

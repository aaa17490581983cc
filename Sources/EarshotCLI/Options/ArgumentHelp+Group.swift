import ArgumentParser

extension ArgumentHelp {
    /// The forms in which a group can be named: "Description" of earshot(1).
    static var group: ArgumentHelp { ArgumentHelp("The group's id (at least 8 characters) or its name.", valueName: "group") }
}

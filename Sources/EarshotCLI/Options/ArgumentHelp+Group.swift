import ArgumentParser

extension ArgumentHelp {
    /// What a group may be named by: "Description" of earshot(1).
    static var group: ArgumentHelp { ArgumentHelp("The group's id (at least 8 characters) or its name.", valueName: "group") }
}

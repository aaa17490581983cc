/// earshotd.conf(5).
enum SettingsPage {
    static func write(_ file: SettingsFile, _ article: Article, to page: inout Mdoc) {
        page.raw(
            """
            .Sh NAME
            .Nm earshotd.conf
            .Nd settings of earshotd
            .Sh SYNOPSIS
            .Pa /etc/earshot/earshotd.conf
            .Pp
            .Pa \\(ti/.config/earshot/earshotd.conf
            .Sh DESCRIPTION
            """)
        page.prose(file.preface)
        page.raw(
            """
            .Pp
            The file is text in UTF-8: sections in brackets, and below each its keys as
            .Ql key = value ,
            one a line.
            A comment begins with
            .Ql #
            or
            .Ql \\&; .
            An unknown section or key, or a bad value, is an error that is named with its file and line; earshotd then ends with 78, or,
            when it was told by SIGHUP to read its settings again, keeps those that it has.
            .Sh SETTINGS
            """)
        for section in file.sections {
            page.raw(".Ss \"[\(section.name)]\"")
            if !section.comment.isEmpty { page.prose(section.comment) }
            guard !section.keys.isEmpty else { continue }
            page.raw(".Bl -tag -width Ds")
            for key in section.keys {
                page.raw(".It Va \(Mdoc.word(key.name)) No = Ar \(key.value.isEmpty ? "\\&" : Mdoc.word(key.value))")
                page.prose(key.comment)
            }
            page.raw(".El")
        }
        for section in article.beforeExamples { page.section(section) }
        page.raw(
            """
            .Sh FILES
            .Bl -tag -width Ds
            .It Pa /etc/earshot/earshotd.conf
            The system's daemon's settings.
            .It Pa /etc/earshot/earshotd.conf.d/*.conf
            Drop-ins, read in the order of their names after it; what was read last wins.
            .It Pa \\(ti/.config/earshot/earshotd.conf
            The settings of a daemon that a user runs.
            .El
            """)
        for section in article.examples { page.section(section) }
        page.raw(".Sh SEE ALSO\n.Xr earshot 1 ,\n.Xr earshot-security 7 ,\n.Xr earshotd 8")
    }
}

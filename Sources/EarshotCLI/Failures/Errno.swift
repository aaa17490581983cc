import Glibc

/// The kernel's error numbers that this command treats specially.
enum Errno {
    static let permission = EPERM
    static let access = EACCES
}

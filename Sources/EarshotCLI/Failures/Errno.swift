import Glibc

/// The kernel's error numbers that mean something special here.
enum Errno {
    static let permission = EPERM
    static let access = EACCES
}

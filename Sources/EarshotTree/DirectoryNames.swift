internal import EarshotSafety
internal import Glibc

/// Lists an open directory by bytes, because names need not be UTF-8.
enum DirectoryNames {
    /// Returns the names except `.` and `..`, in no order; at most `limit` plus one, by which the caller sees that there are more.
    static func list(_ directory: CInt, _ subject: String, limit: Int) throws(FileError) -> [[UInt8]] {
        // A new file description: a duplicated descriptor would share its position with the next reader.
        let copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard copy >= 0 else { throw FileError("list", subject) }
        guard let stream = fdopendir(copy) else {
            let error = FileError("list", subject)
            close(copy)
            throw error
        }
        defer { closedir(stream) }
        var names: [[UInt8]] = []
        while names.count <= limit {
            errno = 0
            guard let entry = readdir(stream) else {
                guard errno == 0 else { throw FileError("list", subject) }
                break
            }
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                guard let start = bytes.baseAddress, let end = memchr(start, 0, bytes.count) else { return Array(bytes) }
                return Array(UnsafeRawBufferPointer(rebasing: bytes[..<(UnsafeRawPointer(end) - start)]))
            }
            if !name.elementsEqual(".".utf8), !name.elementsEqual("..".utf8) { names.append(name) }
        }
        return names
    }
}

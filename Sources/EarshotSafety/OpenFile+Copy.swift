internal import CLinux
internal import Glibc

extension OpenFile {
    /// The most bytes that the kernel copies between two reports of progress.
    private static let copyStep = 32 << 20
    /// The most bytes that are copied at once through memory.
    private static let memoryStep = 256 << 10

    /// Copies the content of another file into this empty one: as shared blocks (`FICLONE`) where the file system has them, otherwise with
    /// copy_file_range(2). From one file system to another, the bytes go through memory, which is faster than sendfile(2). Holes remain holes.
    /// `progress` is called with the number of bytes from the start that are copied, and ends the copy by throwing.
    /// - Returns: The number of copied bytes, which is the file's size unless the file became shorter meanwhile.
    package func copyContent(of source: OpenFile, progress: (UInt64) throws(FileError) -> Void = { _ in }) throws(FileError) -> UInt64 {
        let size = try source.status().size
        if earshot_clone_file(self.descriptor, source.descriptor) == 0 { return size }
        let end = try self.copyData(of: source, to: size, progress)
        // A hole at the end counts towards the file's size.
        guard try self.status().size < end else { return end }
        guard let length = off_t(exactly: end), ftruncate(self.descriptor, length) == 0 else {
            throw FileError("set the size of", self.subject)
        }
        return end
    }

    /// Copies the runs of data up to `size`. Returns `size`, or where the source ended before that.
    private func copyData(of source: OpenFile, to size: UInt64, _ progress: (UInt64) throws(FileError) -> Void) throws(FileError) -> UInt64
    {
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.memoryStep, alignment: 4096)
        defer { memory.deallocate() }
        var isInKernel = true
        var offset: UInt64 = 0
        while case let run = source.data(from: offset, to: size), !run.isEmpty {
            offset = run.lowerBound
            while offset < run.upperBound {
                let wanted = Int(clamping: run.upperBound - offset)
                var count = 0
                if isInKernel {
                    count = earshot_copy_range(self.descriptor, source.descriptor, offset, min(wanted, Self.copyStep))
                    isInKernel = count > 0
                }
                if !isInKernel {
                    // Also reports the error with which the kernel may have stopped.
                    let space = UnsafeMutableRawBufferPointer(rebasing: memory[..<min(wanted, memory.count)])
                    count = try source.read(into: space, at: offset)
                    guard count > 0 else { return offset }
                    try self.write(UnsafeRawBufferPointer(rebasing: space[..<count]), at: offset)
                }
                offset += UInt64(count)
                try progress(offset)
            }
        }
        return size
    }

    /// Returns the first run of data from `start`, ending at `end` at the latest; empty if only a hole follows.
    private func data(from start: UInt64, to end: UInt64) -> Range<UInt64> {
        guard start < end else { return end..<end }
        let data = earshot_seek_data(self.descriptor, Int64(clamping: start))
        // A file system without holes reports an error, except for a hole that reaches the end.
        guard data >= 0 else { return errno == ENXIO ? end..<end : start..<end }
        let first = max(start, UInt64(data))
        guard first < end else { return end..<end }
        let hole = earshot_seek_hole(self.descriptor, Int64(clamping: first))
        return first..<(hole > 0 ? max(first, min(UInt64(hole), end)) : end)
    }
}

import type { Area, LogicalPath } from './path.ts'

export interface FileInfo {
  readonly path: string
  readonly type: 'file' | 'directory'
  /** Bytes; 0 for a directory. */
  readonly size: number
  /** Milliseconds since 1970. */
  readonly modifiedAt: number
}

/**
 * Keeps the bytes. Paths arrive checked and allowed, and lie in an area of the backend. It treats everything but plain
 * files and directories as missing, and no operation leaves its area, whatever other processes do there.
 */
export interface FileBackend {
  readonly areas: readonly Area[]
  /** True where programs can run in its directories. */
  readonly isOnDisk: boolean
  /** The entries of one directory whose names `keep` accepts, in any order. */
  list(path: LogicalPath, keep: (name: string) => boolean): Promise<FileInfo[]>
  stat(path: LogicalPath): Promise<FileInfo>
  read(path: LogicalPath, range: Range): Promise<ReadBytes>
  /** Writes whole or not at all: a reader sees the old file or the new one. Creates missing directories. */
  write(path: LogicalPath, bytes: Uint8Array, options: FileWrite): Promise<void>
  delete(path: LogicalPath, guard: GitGuard): Promise<void>
  /** Runs `work` with the real path of a directory. Rejects where there is none on this machine. */
  inDirectory<T>(path: LogicalPath, work: (directory: string) => Promise<T>): Promise<T>
  /** The logical path of a file of this machine, links followed; undefined where it is none of these files. */
  nameOf(place: string): LogicalPath | undefined
  /** The files of one owner alone, in areas of the same names: `inner` are the folders on the way there. Made when used. */
  within(inner: readonly string[]): FileBackend
  /** Deletes all that `within` keeps there, and follows no link. Gives how many files there were. */
  erase(inner: readonly string[]): Promise<number>
}

export interface FileWrite {
  readonly overwrite: boolean
  readonly guard: GitGuard
}

/**
 * Called where a path leads into the folder of a repository that is not called `.git`: with its name, and the name in it that may
 * decide which programs git runs. Throws where that may not be.
 */
export type GitGuard = (names: readonly string[]) => void

export interface Range {
  readonly offset: number
  readonly length: number
}

export interface ReadBytes {
  readonly bytes: Uint8Array
  /** The size of the whole file. */
  readonly size: number
}

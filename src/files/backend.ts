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
 * Where the bytes are. Paths are checked and allowed before they come here, and lie in an area the backend has. What
 * is no plain file or directory is not there for it; no operation leaves its area, whatever other processes do there.
 */
export interface FileBackend {
  readonly areas: readonly Area[]
  /** The entries of one directory whose names are kept, in any order. */
  list(path: LogicalPath, keep: (name: string) => boolean): Promise<FileInfo[]>
  stat(path: LogicalPath): Promise<FileInfo>
  read(path: LogicalPath, range: Range): Promise<ReadBytes>
  /** Whole or not at all: a reader sees the old file or the new one. Directories on the way are made. */
  write(path: LogicalPath, bytes: Uint8Array, options: { readonly overwrite: boolean }): Promise<void>
  delete(path: LogicalPath): Promise<void>
  /** Does work with a directory as other programs reach it. Rejects where there is none on this machine. */
  inDirectory<T>(path: LogicalPath, work: (directory: string) => Promise<T>): Promise<T>
  /** What a file of this machine is called here, links followed; undefined where it is none of these files. */
  nameOf(place: string): LogicalPath | undefined
}

export interface Range {
  readonly offset: number
  readonly length: number
}

export interface ReadBytes {
  readonly bytes: Uint8Array
  /** Of the whole file. */
  readonly size: number
}

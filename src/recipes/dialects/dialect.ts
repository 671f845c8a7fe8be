// The contract of a dialect: how one program writes its agent files.
//
// A dialect is one file: `cursor.ts` is the shortest example. To add one, write the file and add a line to `index.ts`;
// detection, discovery, conversion, validation and the command line loop over that list.
// Called by: `load-agent-file` (detect and read), `discovery/places` (folders), `convert` (write).
//
// Must stay true:
// - `read` never makes an agent stronger than its own program would: an unknown restriction becomes the strictest one.
// - `write` may lose something, but it never allows more; `convert` reads the text again and reports each loss.

import type { Json } from '../../core/base/json.ts'
import type { AgentFileWriter, ModelNaming } from '../agent-file/agent-file-writer.ts'
import type { AgentFileDraft } from '../agent-file/draft.ts'
import type { Spelling } from '../agent-file/mcp-servers.ts'
import type { Slash } from '../agent-file/patterns.ts'
import type { ReadServerWord, ToolWords } from '../agent-file/tool-words.ts'
import type { Fields } from '../text/fields.ts'

/** The way in which one program writes its agent files. A new one is a file beside this one and a line in `index.ts`. */
export interface AgentDialect {
  readonly name: string
  /** Project folders with its files. If two files share a name, the earlier folder wins. */
  readonly folders: readonly string[]
  /** Project folders that several programs use; searched after those of one program. */
  readonly sharedFolders?: readonly string[]
  /** Folders below the user's home. */
  readonly homeFolders: readonly string[]
  /** Where `convert` tells people to put a file. */
  readonly place: string
  /** The ending of its file names. */
  readonly ending: string
  /** Other endings it accepts. */
  readonly otherEndings?: readonly string[]
  /** Keys that only its files have. */
  readonly signs: readonly string[]
  /** Recognizes its files by other traits of their keys. */
  readonly isLike?: (fields: Fields) => boolean
  /** False if a file without a description can be an agent. */
  readonly isDescribed?: boolean
  /** How `convert` names models. */
  readonly models: ModelNaming
  /** Its words for tools and the tools they stand for. Case does not matter. */
  readonly toolWords: ToolWords
  /** Resolves words for tools of servers, if the dialect writes them in its own way. */
  readonly serverTools?: ReadServerWord
  /** Where its files may write a variable as `$NAME`. Default: `alone`, only as a whole text. */
  readonly variables?: Spelling
  /** The meaning of a leading slash in its patterns. Default: the project. */
  readonly slash?: Slash
  /**
   * The files of a project that its program reads in each folder: of each list the first file that exists. Default: AGENTS.md.
   */
  readonly projectFiles?: readonly (readonly string[])[]
  /** True if `@path` in these files brings in another one. */
  readonly importsFiles?: boolean
  /** Writes a tool of an MCP server; `*` means all its tools. */
  readonly serverWord: (server: string, tool: string) => string
  /** Fills a draft from the keys of a file. The instructions already hold the body of the file. */
  readonly read: (draft: AgentFileDraft) => void
  /** Writes the keys of a file, as far as the dialect can express the agent. `convert` finds the losses. */
  readonly write: (writing: AgentFileWriter) => WrittenFields
}

export interface WrittenFields {
  readonly [key: string]: Json | undefined
}

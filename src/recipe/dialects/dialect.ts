import type { Json } from '../../base/json.ts'
import type { Draft } from '../agent-file/draft.ts'
import type { Slash } from '../agent-file/patterns.ts'
import type { ReadServerWord, ToolWords } from '../agent-file/tool-words.ts'
import type { ModelNaming, Writing } from '../agent-file/writing.ts'
import type { Fields } from '../text/fields.ts'

/** The way in which one program writes its agent files. A new one is a file beside this one and a line in `index.ts`. */
export interface AgentDialect {
  readonly name: string
  /** Folders of a project that hold its files, the first of a name taken. */
  readonly folders: readonly string[]
  /** Folders that several programs use: looked at after those of one program. */
  readonly sharedFolders?: readonly string[]
  /** The same below the home folder of the user. */
  readonly homeFolders: readonly string[]
  /** Where `convert` says that a file belongs. */
  readonly place: string
  /** How the names of its files end. */
  readonly ending: string
  /** How they may end too. */
  readonly otherEndings?: readonly string[]
  /** Keys that only its files have. */
  readonly signs: readonly string[]
  /** What else tells its files by their keys. */
  readonly isLike?: (fields: Fields) => boolean
  /** False: a file needs no description to be an agent's. */
  readonly isDescribed?: boolean
  /** How it names models, where `convert` writes one. */
  readonly models: ModelNaming
  /** Its words for tools, and the tools they stand for. Upper and lower case are one. */
  readonly toolWords: ToolWords
  /** The tools of servers that a word may stand for, where it has a way of its own to write them. */
  readonly serverTools?: ReadServerWord
  /** What a path that begins with a slash is below, in its patterns. Left out: its project. */
  readonly slash?: Slash
  /** Its word for a tool of an MCP server; `*` for the tool is all of them. */
  readonly serverWord: (server: string, tool: string) => string
  /** Fills a draft with what the keys of a file say. The body of the file is the instructions already. */
  readonly read: (draft: Draft) => void
  /** The keys of a file that says the same, as far as the program has words for it. `convert` finds what is missing. */
  readonly write: (writing: Writing) => WrittenFields
}

export interface WrittenFields {
  readonly [key: string]: Json | undefined
}

import { programOf } from '../../core/tools/shell-tool.ts'

/** A program that looks at calls, results or the end of an agent. Plain data, kept with the agent. */
export interface FileHook {
  readonly event: HookEvent
  /** Matches names of tools as Claude Code has them; empty for all. */
  readonly matcher: string
  /** The program as its file writes it. */
  readonly command: string
  /** The words after the command where it is started without a shell; null where it is a command line. */
  readonly args: readonly string[] | null
  readonly seconds: number
}

export const HOOK_EVENTS = ['PreToolUse', 'PostToolUse', 'Stop', 'SubagentStop'] as const
export type HookEvent = (typeof HOOK_EVENTS)[number]

/** The words of a hook's program: directly where no shell is needed, as its file writes them where it lists its words. */
export function wordsOfHook({ command, args }: Pick<FileHook, 'command' | 'args'>): readonly string[] {
  return args === null ? programOf(command) : [command, ...args]
}

/** Matches what is a list of names, and not a regular expression. */
export const PLAIN_MATCHER = /^[\w\s,|-]*$/

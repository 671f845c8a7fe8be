import { oneLine } from '../terminal/clean.ts'
import { bareName } from './mentions.ts'

const NAMED = 20

const HELP = `/help      this text
/exit      leaves; so does Ctrl-D
@name TEXT hands TEXT to the recipe or agent of that name, as a subagent
A message that begins with a space goes to the agent whatever it begins with.`

/**
 * What the command line itself says to a message: to one of its commands, or to a name that nobody has. Undefined where the
 * message is for the agent. No model is asked.
 */
export async function localReply(
  message: string,
  namesHere: () => Promise<ReadonlySet<string>>,
): Promise<string | undefined> {
  const [, command] = /^\/([a-z][\w-]*)(?:\s|$)/i.exec(message) ?? []
  if (command !== undefined) return command === 'help' ? HELP : `There is no /${oneLine(command)}.\n${HELP}`
  const [, name, rest = ''] = /^@([\p{L}\p{N}_][\p{L}\p{N}_./-]*)[,:]?\s*(.*)/su.exec(message) ?? []
  return name === undefined ? undefined : replyTo(bareName(name), rest, await namesHere())
}

export function isExit(message: string): boolean {
  return /^\/(?:exit|quit)\s*$/.test(message)
}

function replyTo(name: string, rest: string, names: ReadonlySet<string>): string | undefined {
  if (!names.has(name)) return `There is no "${oneLine(name)}" here. ${listed(names)}`
  return rest.trim() === '' ? `Say what ${oneLine(name)} shall do: @${oneLine(name)} TEXT` : undefined
}

function listed(names: ReadonlySet<string>): string {
  if (names.size === 0) return 'There are no recipes and no agent files; legate doctor shows where they are looked for.'
  const shown = [...names].sort().slice(0, NAMED)
  const more = names.size - shown.length
  return `There are: ${shown.map((one) => `@${oneLine(one)}`).join(', ')}${more > 0 ? ` and ${more} more` : ''}.`
}

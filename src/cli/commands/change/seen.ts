import { type Node, seenOf } from '../../../doors/rows.ts'
import { type Call, CliError, EXIT, textOption } from '../../command/command.ts'
import { legate } from '../../command/next-command.ts'
import { terminalWidth } from '../../terminal/clean.ts'
import { wrapSigned } from '../../terminal/width.ts'

/**
 * The digest that the person gave, to go with the answer: nothing is looked up for the person. Throws, and shows the request,
 * where the digest is needed or names another request than the node has now.
 */
export function typedSeen(
  call: Call,
  node: Node,
  {
    isNeeded,
    lines,
  }: {
    /** True: the answer counts only for what the person has seen. */
    readonly isNeeded: boolean
    /** The request as it is now, then the command that answers it. */
    readonly lines: () => readonly string[]
  },
): { readonly seen?: string } {
  const seen = textOption(call, 'seen')?.toLowerCase()
  const now = seenOf(node)
  if (seen !== undefined && !FORM.test(seen)) {
    throw new CliError(`--seen needs 64 hex digits, as ${legate('approvals')} prints them.`, EXIT.usage)
  }
  // A node that asks nothing is refused by the rules, which say who has answered.
  const isRight = now === null || (seen === undefined ? !isNeeded : now === seen)
  if (isRight) return seen === undefined ? {} : { seen }
  const why = seen === undefined ? 'the request must be seen first' : 'this is not the request you saw'
  const [asked = '', ...commands] = lines()
  const { lines: fitted } = wrapSigned(asked, terminalWidth(process.stderr) - INDENT.length - 1)
  const shown = [...fitted, ...commands].map((line) => `${INDENT}${line}`)
  const message = [`Nothing was answered: ${why}. The current request:`, ...shown].join('\n')
  throw new CliError(message, EXIT.usage, { namesHelp: false })
}

const INDENT = '  '
const FORM = /^[0-9a-f]{64}$/

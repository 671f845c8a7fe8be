import { lookWith } from '../../../doors/rows.ts'
import type { PendingApproval, PendingQuestion } from '../../../index.ts'
import { type Call, CliError, EXIT, isSet } from '../../command/command.ts'
import { legate } from '../../command/next-command.ts'
import { shownId } from '../../store/find-run.ts'
import { withDesk } from '../../store/open-desk.ts'
import { age, duration } from '../../terminal/amounts.ts'
import { exactLine, oneLine } from '../../terminal/clean.ts'
import { jsonLine, outputColumns, write } from '../../terminal/output.ts'
import { wrapSigned } from '../../terminal/width.ts'
import { recentRuns, reportTampered } from '../../watch/recent-runs.ts'
import { answerCommand, requestLines, seenOption } from '../../watch/request-text.ts'
import { workspaceOf } from '../../watch/words.ts'

const PAGE = 200
const INDENT = 9

/** Lists everything that waits for a person, or one of it: approvals, then questions; what expires first comes first. */
export function approvals(call: Call): Promise<number> {
  return withDesk(call, 'read', async (desk) => {
    const [ending = ''] = call.words
    let count = 0
    const put = async (asked: PendingApproval | PendingQuestion) => {
      if (!asked.nodeId.endsWith(ending.toLowerCase())) return
      count++
      if (isSet(call, 'json')) return write(jsonLine(asked))
      if ('to' in asked) return write(pendingQuestionLines(asked))
      const { conversationId } = asked
      const folder = await lookWith(desk.store, conversationId, (tree) => workspaceOf(tree, conversationId))
      return write(approvalLines(asked, folder))
    }
    await all((query) => desk.approvals(query), put)
    await all((query) => desk.questions(query), put)
    if (count === 0 && ending !== '') throw new CliError(`${oneLine(ending)} does not wait for a person.`, EXIT.usage)
    if (count === 0 && !isSet(call, 'json')) await write('Nothing waits for a person.\n')
    // Reads the ended trees as `ps` does: one of them may have been changed.
    await recentRuns(desk.store)
    return reportTampered(desk.store)
  })
}

interface Query<T> {
  readonly limit: number
  readonly after?: T
}

/** Reads all pages. */
async function all<T>(read: (query: Query<T>) => Promise<T[]>, put: (one: T) => Promise<void>): Promise<void> {
  for (let page = await read({ limit: PAGE }); page.length > 0; ) {
    for (const one of page) await put(one)
    const after = page.at(-1)
    page = await read({ limit: PAGE, ...(after === undefined ? {} : { after }) })
  }
}

/** Shows a question with the command that answers it. */
export function pendingQuestionLines(asked: PendingQuestion): string {
  const { nodeId, path, text, since, expiresAt } = asked
  const now = Date.now()
  return [
    `${shownId(nodeId)}  ${path.map(oneLine).join(' > ')}`,
    `  asks   ${indented(oneLine(text))}`,
    `  since  ${age(now - since)}; continues without an answer in ${duration(Math.max(0, expiresAt - now))}`,
    `  ${answerCommand(asked)}`,
    '',
  ].join('\n')
}

/** Shows a request with the commands that answer it. */
export function approvalLines(approval: PendingApproval, folder: string | undefined): string {
  const { nodeId, path, request, tool, reason, seen, since, expiresAt } = approval
  const id = shownId(nodeId)
  const now = Date.now()
  // Only a call has arguments to change.
  const edit = tool === null ? '' : ' [--edit JSON]'
  return [
    `${id}  ${path.map(oneLine).join(' > ')}`,
    `  wants  ${indented(requestLines(approval, folder))}`,
    `  rule   ${indented(exactLine(ruleText(reason, request)))}`,
    `  since  ${age(now - since)}; denied automatically in ${duration(Math.max(0, expiresAt - now))}`,
    // A command stays on one line: the terminal breaks it, and copies it whole.
    `  ${legate(`approve ${id}${seenOption(seen)}`)}${edit} [--always]`,
    `  ${legate(`deny ${id}${seenOption(seen)} --reason TEXT`)}`,
    '',
  ].join('\n')
}

/** The rule that wants a word; with the request where the rule does not name it: `ann asks for tool:*, for tool:deploy`. */
export function ruleText(reason: string, request: string): string {
  return reason.endsWith(` for ${request}`) ? reason : `${reason}, for ${request}`
}

/** Indents every line of a text, however long it is. */
export function indented(text: string): string {
  return wrapSigned(text, outputColumns() - INDENT - 1).lines.join(`\n${' '.repeat(INDENT)}`)
}

import type { PendingApproval } from '../../index.ts'
import { type Call, EXIT, isSet } from '../command.ts'
import { shortId } from '../find-run.ts'
import { withRuntime } from '../open-store.ts'
import { age, duration } from '../terminal/amounts.ts'
import { oneLine } from '../terminal/clean.ts'
import { jsonLine, outputColumns, write } from '../terminal/output.ts'
import { wrap } from '../terminal/wrap.ts'
import { whole } from '../watch/words.ts'

const PAGE = 200
const INDENT = 9

/** Everything that waits for a person, what expires first at the top. */
export function approvals(call: Call): Promise<number> {
  return withRuntime(call, 'read', async (runtime) => {
    let count = 0
    for (let page = await runtime.approvals({ limit: PAGE }); page.length > 0; ) {
      for (const asked of page) await write(isSet(call, 'json') ? jsonLine(asked) : linesOf(asked))
      count += page.length
      const after = page.at(-1)
      page = await runtime.approvals({ limit: PAGE, ...(after === undefined ? {} : { after }) })
    }
    if (count === 0 && !isSet(call, 'json')) await write('Nothing waits for a person.\n')
    return EXIT.completed
  })
}

function linesOf({ nodeId, path, request, tool, input, reason, since, expiresAt }: PendingApproval): string {
  const id = shortId(nodeId)
  const asked = oneLine(tool ?? request)
  const what = tool === null && input === null ? asked : `${asked} ${whole(input)}`
  const now = Date.now()
  return [
    `${id}  ${path.map(oneLine).join(' > ')}`,
    `  wants  ${indented(what)}`,
    `  rule   ${indented(`${oneLine(reason)}, for ${oneLine(request)}`)}`,
    `  since  ${age(now - since)}; denied by itself in ${duration(Math.max(0, expiresAt - now))}`,
    `  ${indented(`legate approve ${id} [--edit JSON] [--always], or legate deny ${id} --reason TEXT`)}`,
    '',
  ].join('\n')
}

/** All of it, however many rows that takes. */
function indented(text: string): string {
  return wrap(text, outputColumns() - INDENT - 1).lines.join(`\n${' '.repeat(INDENT)}`)
}

import { look, wantedText } from '../../../doors/rows.ts'
import type { InboxItem } from '../../../index.ts'
import { type Call, isSet, textOption } from '../../command/command.ts'
import { legate } from '../../command/next-command.ts'
import type { Desk } from '../../desk/desk.ts'
import { shownId } from '../../store/find-run.ts'
import { withDesk } from '../../store/open-desk.ts'
import { age } from '../../terminal/amounts.ts'
import { exactLine, oneLine } from '../../terminal/clean.ts'
import { jsonLine, write } from '../../terminal/output.ts'
import { reportTampered } from '../../watch/recent-runs.ts'
import { settleCommand } from '../../watch/request-text.ts'
import { workspaceOf } from '../../watch/words.ts'
import { approvalLines, indented, pendingQuestionLines } from './approvals.ts'

const PAGE = 200

/** Lists everything that needs a person, the most urgent first, with the command that deals with it. */
export function inbox(call: Call): Promise<number> {
  return withDesk(call, 'read', async (desk) => {
    let count = 0
    for await (const item of itemsOf(desk, textOption(call, 'owner'))) {
      count++
      await write(isSet(call, 'json') ? jsonLine(item) : await linesOf(desk, item))
    }
    if (count === 0 && !isSet(call, 'json')) await write('Nothing needs a person.\n')
    return reportTampered(desk.store)
  })
}

async function* itemsOf(desk: Desk, owner: string | undefined): AsyncGenerator<InboxItem> {
  const mine = { limit: PAGE, ...(owner === undefined ? {} : { owner }) }
  let page = await desk.inbox(mine)
  for (let after = page.at(-1); after !== undefined; after = page.at(-1)) {
    yield* page
    page = page.length < PAGE ? [] : await desk.inbox({ ...mine, after })
  }
}

async function linesOf({ store }: Desk, item: InboxItem): Promise<string> {
  if (item.type === 'question') return pendingQuestionLines(item.question)
  if (item.type === 'approval') {
    const { approval, rootId } = item
    return approvalLines(approval, await look(store, rootId, (tree) => workspaceOf(tree, approval.conversationId)))
  }
  const { nodeId, runId, path, since } = item
  return [
    `${shownId(nodeId ?? runId)}  ${path.map(oneLine).join(' > ')}`,
    ...wordsOf(item).map(([name, words]) => `  ${name.padEnd(6)} ${indented(words)}`),
    `  since  ${age(Date.now() - since)}`,
    `  ${commandFor(item)}`,
    '',
  ].join('\n')
}

type OtherItem = Exclude<InboxItem, { readonly type: 'approval' | 'question' }>

function wordsOf(item: OtherItem): [name: string, words: string][] {
  const why: [string, string] = ['why', exactLine(item.text)]
  if (item.type === 'failed') return [['ended', item.status], ...(item.text === '' ? [] : [why])]
  if (item.type !== 'uncertain') return [[item.type === 'stalled' ? 'stands' : 'waits', exactLine(item.text)]]
  const { tool, input } = item
  const call = wantedText({ request: `tool:${tool}`, tool, input })
  return [['doubt', `${call}: it may or may not have taken effect`], why]
}

function commandFor(item: OtherItem): string {
  const { type, nodeId, runId } = item
  const id = shownId(runId)
  if (item.type === 'uncertain') return settleCommand({ nodeId: nodeId ?? '', seen: item.seen })
  if (type === 'failed') return `${legate(`show ${id}`)}, then ${legate(`retry ${id}`)}`
  return type === 'stalled' ? legate(`audit ${id} --repair`) : `${legate(`why ${id}`)} says what to start`
}

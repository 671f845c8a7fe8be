import type { NodeRun } from '../../agent/hooks/node-run.ts'
import { toJson } from '../../base/json.ts'
import { OUTSIDE_MS } from '../../tool/tool.ts'

const MOST_CHARS = 8_000

/** Asks for the result of a call that somebody else executes. The task waits for it as a row and holds no worker. */
export async function askOutside(run: NodeRun): Promise<'done'> {
  const { home, node, work, toolkit } = run
  const { call } = node.input
  const tool = toolkit.find(call?.name ?? '')?.tool
  const schema = toJson(tool?.output?.jsonSchema ?? null)
  const { planOutside } = await import('../../rules/delegation/question.ts')
  const asked = {
    text: `${call?.name ?? ''}(${JSON.stringify(call?.input ?? null)})`.slice(0, MOST_CHARS).toWellFormed(),
    by: tool?.outside?.by ?? null,
    schema: schema.ok ? schema.value : null,
    timeoutMs: node.timeoutMs ?? OUTSIDE_MS,
  }
  await home.ledger.commit({ kind: 'ask', rootId: node.rootId, plan: (draft) => planOutside(draft, work.claim, asked) })
  return 'done'
}

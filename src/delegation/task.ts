import type { NodeRun } from '../agent/node-run.ts'
import { fold } from '../graph/fold.ts'
import { withWords } from '../graph/outcome.ts'
import { planResult } from '../graph/result.ts'
import { childIds } from '../graph/spawn.ts'
import { invoke } from '../tool/invoke.ts'
import type { ToolEnd } from '../tool/result.ts'
import type { ToolEntry } from '../tool/toolkit.ts'
import { CalledChildren } from './called-children.ts'
import { refuse, spawn } from './spawn.ts'
import { isSubagentEntry, type SubagentEntry } from './subagent.ts'

/** One task: a child is started and the task waits as a row, or the tool runs and its result is committed. */
export function runTask(run: NodeRun): Promise<void> {
  const entry = run.toolkit.find(run.node.input.call?.name ?? '')
  if (entry !== undefined && isSubagentEntry(entry)) return delegateTask(run, entry)
  return runTool(run, entry)
}

async function runTool(run: NodeRun, entry: ToolEntry | undefined): Promise<void> {
  const children = new CalledChildren(run)
  const end = await invoke(run, entry, children)
  children.end()
  if (end !== undefined) await commitEnd(run, end)
}

async function delegateTask(run: NodeRun, entry: SubagentEntry): Promise<void> {
  const call = run.node.input.call
  const ids = childIds(run.node.id, 0)
  const spawned =
    call?.invalid === undefined
      ? await spawn(run, { offer: entry, input: call?.input, mode: 'parked', ids })
      : refuse('invalid_input', entry.agent.name, `The arguments are not JSON: ${call.invalid}`)
  if (!('refused' in spawned)) return
  const facts = {
    contract: entry.contract,
    agentName: spawned.agentName,
    hostName: run.agent.name,
    delegationContext: { input_payload: call?.input ?? null },
    childConversationId: '',
  }
  const { content, metadata } = fold(facts, withWords(spawned.refused, {}))
  await commitEnd(run, { state: 'finished', output: { content, isError: true }, metadata, body: null })
}

async function commitEnd({ node, work, home }: NodeRun, end: ToolEnd): Promise<void> {
  await home.ledger.commit({
    kind: 'result',
    rootId: node.rootId,
    plan: (draft) => {
      if (end.body !== null) draft.addBody(end.body)
      return planResult(draft, work.claim, end)
    },
  })
}

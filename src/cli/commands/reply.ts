import type { Node, Runtime } from '../../index.ts'
import { type Call, CliError, EXIT } from '../command.ts'
import { findIds, findRun, only, shortId } from '../find-run.ts'
import { withRuntime } from '../open-store.ts'
import { write } from '../terminal/output.ts'
import { questionOf } from '../watch/asked.ts'
import { standingOf } from '../watch/standing.ts'

/** Answers what an agent has asked a person. */
export function reply(call: Call): Promise<number> {
  const [ending = '', ...words] = call.words
  const text = words.join(' ').trim()
  if (text === '') throw new CliError('The answer is empty: legate answer ID TEXT.', EXIT.usage)
  return withRuntime(call, 'write', async (runtime) => {
    const node = namedQuestion(runtime, ending) ?? onlyQuestion(runtime, ending)
    await runtime.answer(node.id, { text, by: call.env['USER'] ?? 'user' })
    await write(`Answered: ${questionOf(node)}\n`)
    return EXIT.completed
  })
}

function namedQuestion({ store }: Runtime, ending: string): Node | undefined {
  const nodes = findIds(store, ending).flatMap(({ id, type }) => (type === 'node' ? (store.node(id) ?? []) : []))
  const asking = nodes.filter(({ state, wait }) => state === 'waiting' && wait?.on === 'question')
  return asking.length === 0 ? undefined : only(asking, ending, lineOf)
}

/** The id of a run will do where only one question waits in it. */
function onlyQuestion(runtime: Runtime, ending: string): Node {
  const turn = findRun(runtime.store, ending)
  const asking = turn.state === 'ended' ? [] : standingOf(runtime, turn).questions
  if (asking.length === 0) throw new CliError(`Nothing in the run ${shortId(turn.id)} waits for an answer.`, EXIT.usage)
  return only(asking, ending, lineOf)
}

function lineOf(node: Node): string {
  return `${shortId(node.id)}  ${questionOf(node)}`
}

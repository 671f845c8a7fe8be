import type { ToolCall } from '../../graph/content.ts'
import type { TreeReader } from '../../graph/reader.ts'
import type { Node } from '../../graph/rows.ts'
import { messageBefore, tasksBefore } from '../../graph/tasks.ts'
import type { StepAnswer } from '../../rules/turn/expand.ts'
import type { NodeRun } from '../hooks/node-run.ts'
import type { AnswerVerdict } from './answer.ts'

/** A model that called nothing but tools that do not exist, so many times in a row, does not find its way back. */
export const MOST_ASTRAY = 5

/** Ends the run of a model that goes astray, after it read several times which tools there are; null where it may go on. */
export function astray({ toolkit, tree, node, home }: NodeRun, { calls }: StepAnswer): AnswerVerdict | null {
  // A recording has results of tools that are not here.
  if (home.live.tape !== null) return null
  const isAstray = (asked: readonly ToolCall[]) =>
    asked.length > 0 && asked.every(({ name }) => toolkit.find(name) === undefined)
  if (!isAstray(calls)) return null
  const before = [...callsBefore(tree, node)]
  if (before.length < MOST_ASTRAY - 1 || !before.every(isAstray)) return null
  const name = calls[0]?.name.slice(0, MOST_NAME) ?? ''
  const message = `The model called tools that do not exist ${MOST_ASTRAY} times in a row, the last time "${name}". Check the tools of the agent and the words of its instructions.`
  return { end: 'failed', code: 'unknown_tool', message }
}

const MOST_NAME = 80

/** The calls of the messages before this one, the newest first: up to one that called nothing. */
function* callsBefore(reader: TreeReader, asking: Node): Generator<readonly ToolCall[]> {
  let message: Node | undefined = asking
  for (let step = 1; step < MOST_ASTRAY; step++) {
    const [first]: readonly Node[] = tasksBefore(reader, message)
    message = first === undefined ? undefined : messageBefore(reader, first)
    const calls = message?.output.calls
    if (message === undefined || calls === undefined) return
    yield calls
  }
}

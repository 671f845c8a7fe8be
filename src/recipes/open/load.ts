import { keeperOf, type NodeRun } from '../../core/agent/hooks/node-run.ts'
import type { RowToolEnd } from '../../core/delegation/background/row-tool.ts'
import type { Keeper } from '../../core/files/files.ts'
import { Draft } from '../../core/graph/draft.ts'
import { finishedTasks, planLoadTask, type TaskWish } from '../../core/rules/delegation/child-tools.ts'
import { look } from '../../core/store/look.ts'
import { readDefinition } from '../discovery/load-definition.ts'
import type { OpenSpec } from '../inline/spec.ts'
import { Arguments, OpenRefusal, refusedCall } from './arguments.ts'
import { loadFailure, type Source, similarNames, sourceFile, sourcesOf } from './sources.ts'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-/
/** The form of goose's task names. */
const TASK = /^\d{8}_\w/

/** The tool `load`: lists sources, shows one, or returns a background task. */
export async function load(run: NodeRun, given: unknown, spec: OpenSpec): Promise<RowToolEnd> {
  try {
    const args = new Arguments(given)
    const name = args.text('source')
    const wish: TaskWish = args.flag('cancel') === true ? 'cancel' : args.flag('peek') === true ? 'peek' : 'wait'
    if (name === null) return text(await listed(run, spec))
    if (UUID.test(name) || TASK.test(name)) return await task(run, name, wish)
    return text(await loaded(name, spec, keeperOf(run)))
  } catch (error) {
    if (error instanceof OpenRefusal) return refusedCall(error, 'delegate')
    throw error
  }
}

function text(content: string): RowToolEnd {
  return { state: 'finished', output: { content }, body: null }
}

/** How long `load` waits for a running task. */
const WAIT_MS = 300_000

async function task({ home, node, work }: NodeRun, id: string, wish: TaskWish): Promise<RowToolEnd> {
  const did = await home.ledger.commit({
    kind: wish === 'cancel' ? 'cancel' : 'deliver',
    rootId: node.rootId,
    plan: (draft) => planLoadTask(draft, work.claim, { id, wish, waitMs: WAIT_MS }),
  })
  if (did === 'done') return 'done'
  throw new OpenRefusal('INVALID_PARAMS', `Task '${id}' not found.`)
}

const HEADINGS: readonly (readonly [Source['kind'], string])[] = [
  ['subrecipe', 'Subrecipes'],
  ['recipe', 'Recipes'],
  ['agent', 'Agents'],
  ['skill', 'Skills'],
]

async function listed(run: NodeRun, spec: OpenSpec): Promise<string> {
  const { home, conversation } = run
  const sources = await sourcesOf(spec, keeperOf(run))
  const { store, clock } = home.ledger
  const tasks = await look(store, conversation.rootId, (tree) =>
    finishedTasks(new Draft(tree, clock.now()), conversation),
  )
  const finished = tasks.map((line) => `• ${line}`)
  const groups = HEADINGS.flatMap(([kind, heading]) => {
    const lines = sources.filter((one) => one.kind === kind).map(sourceLine)
    return lines.length === 0 ? [] : [`${heading}:\n${lines.join('\n')}`]
  })
  const parts = [
    finished.length === 0 ? '' : `Completed Tasks (awaiting retrieval):\n${finished.join('\n')}`,
    groups.length === 0 ? '' : `Available sources for load/delegate:\n\n${groups.join('\n\n')}`,
  ].filter((part) => part !== '')
  return parts.length === 0 ? 'No sources available for load/delegate.' : parts.join('\n\n')
}

const MOST_CHARS = 160

function sourceLine({ name, description }: Source): string {
  const line = (description || 'No description').replace(/\s+/g, ' ').trim()
  return `• ${name} - ${line.length <= MOST_CHARS ? line : `${line.slice(0, MOST_CHARS - 3)}...`}`
}

/** Reads the text of a source with its templates unfilled. */
async function loaded(name: string, spec: OpenSpec, isKept: Keeper): Promise<string> {
  const sources = await sourcesOf(spec, isKept)
  const source = sources.find((one) => one.name === name)
  if (source !== undefined) {
    const body = source.kind === 'skill' ? source.skill.instructions : await instructionsIn(source, isKept)
    return `# Loaded: ${name} (${source.kind})\n\n${body}\n\n---\nThis knowledge is now available in your context.`
  }
  const near = similarNames(
    name,
    sources.map((one) => one.name),
  )
  const rest = near.length === 0 ? 'Use load() to see available sources.' : `Did you mean: ${near.join(', ')}?`
  throw new OpenRefusal('INVALID_PARAMS', `Source '${name}' not found. ${rest}`)
}

async function instructionsIn(source: Exclude<Source, { kind: 'skill' }>, isKept: Keeper): Promise<string> {
  const { file, inside } = sourceFile(source)
  const { instructions, prompt } = await readDefinition(file, { mode: 'lenient', isKept, ...inside }).catch(
    (error: unknown) => {
      throw new OpenRefusal('INVALID_PARAMS', `Source '${source.name}' cannot be read: ${loadFailure(error)}`)
    },
  )
  return [instructions, prompt ?? ''].filter((part) => part !== '').join('\n\n')
}

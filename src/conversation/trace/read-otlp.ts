import { code, type OptionRules, oneOf, orJust, readOptions } from '../../base/options.ts'
import { treeWith } from '../../graph/reader.ts'
import type { Id, Turn } from '../../graph/rows.ts'
import { notFound } from '../../store/not-found.ts'
import type { Store } from '../../store/store.ts'
import type { SpanContent, Vocabulary } from '../../tool/telemetry.ts'
import { type OtlpTraces, otlpOf } from './otlp.ts'

/** How a trace is written. */
export interface OtlpOptions {
  /** True: with the text of people and models, arguments and results. A function decides for each kind. Default false. */
  readonly content?: boolean | ((what: SpanContent) => boolean)
  /** The names of the attributes. Default `1.41`, which backends read today. */
  readonly vocabulary?: Vocabulary
}

const RULES: OptionRules<OtlpOptions> = {
  content: orJust(true, orJust(false, code)),
  vocabulary: oneOf('1.41', 'latest'),
}

/** The trace of a run, or of all runs of a conversation, by its id. */
export async function readOtlp(store: Store, id: Id, options: OtlpOptions): Promise<OtlpTraces> {
  const { content = false, vocabulary = '1.41' } = readOptions('otlp(id, options)', options, RULES)
  const shows = typeof content === 'function' ? content : () => content
  return otlpOf(store, await runsOf(store, id), { vocabulary, shows })
}

async function runsOf(store: Store, id: Id): Promise<readonly Turn[]> {
  const tree = await treeWith(store, id)
  const run = tree.turn(id)
  if (run !== undefined) return [run]
  if (tree.conversation(id) === undefined) throw await notFound(store, 'run', id)
  return tree.turnsOf(id, { limit: Number.MAX_SAFE_INTEGER })
}

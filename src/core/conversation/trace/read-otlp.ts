import { code, type OptionRules, oneOf, orJust, readOptions } from '../../base/options.ts'
import { wantedVocabulary } from '../../base/package/vocabulary.ts'
import type { Id, Turn } from '../../graph/rows.ts'
import { look, lookWith } from '../../store/look.ts'
import { notFound } from '../../store/not-found.ts'
import type { Store } from '../../store/store.ts'
import type { SpanContent, Vocabulary } from '../../tool/telemetry.ts'
import { type AskedOf, type OtlpTraces, otlpOf } from './otlp.ts'

/** How a trace is written. */
export interface OtlpOptions {
  /** True: with the text of people and models, arguments and results. A function decides for each kind. Default false. */
  readonly content?: boolean | ((what: SpanContent) => boolean)
  /**
   * The names of the attributes. Default: those of the runtime's live spans; without `telemetry` those that the environment
   * variable `OTEL_SEMCONV_STABILITY_OPT_IN` asks for, else `1.41`.
   */
  readonly vocabulary?: Vocabulary
}

const RULES: OptionRules<OtlpOptions> = {
  content: orJust(true, orJust(false, code)),
  vocabulary: oneOf('1.41', 'latest'),
}

/** The trace of a run, or of all runs of a conversation, by its id. */
export async function readOtlp(
  source: {
    readonly store: Store
    /** The names that live spans have; undefined where nobody traces. */
    readonly live: Vocabulary | undefined
    /** The requests of model calls; null where the reader may not see them. */
    readonly askedOf: AskedOf | null
  },
  id: Id,
  options: OtlpOptions,
): Promise<OtlpTraces> {
  const { store, live = wantedVocabulary(), askedOf } = source
  const { content = false, vocabulary = live } = readOptions('otlp(id, options)', options, RULES)
  const shows = typeof content === 'function' ? content : () => content
  return otlpOf(store, runsOf(store, id), { vocabulary, shows, askedOf })
}

const PAGE = 100

/** The run, or all runs of the conversation, oldest first: some at a time. */
async function* runsOf(store: Store, id: Id): AsyncGenerator<readonly Turn[]> {
  const { run, row } = await lookWith(store, id, (tree) => ({ run: tree.turn(id), row: tree.conversation(id) }))
  if (run === undefined && row === undefined) throw await notFound(store, 'run', id)
  if (run !== undefined) yield [run]
  if (run !== undefined || row === undefined) return
  for (let first = 0; first < row.turnCount; first += PAGE) {
    const limit = Math.min(PAGE, row.turnCount - first)
    const range = { last: first + limit - 1, limit }
    const turns = await look(store, row.rootId, (tree) => tree.turnsOf(id, range))
    if (turns.length > 0) yield turns
  }
}

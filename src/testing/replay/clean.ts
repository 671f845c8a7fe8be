import type { Json } from '../../base/json.ts'
import { SECRET_MARK } from '../../base/secret-shapes.ts'
import { withoutSecrets } from '../../base/secrets.ts'
import { environmentSecrets } from '../../model/ai-sdk/known-secrets.ts'
import type { IdTokens } from './id-tokens.ts'

export type Redact = (text: string) => string

const SECRET_KEY = /(?:api_?key|access_?key|token|secret|password|passwd|authorization|cookie|credentials?)$/i
/** The same of an object that is a text. */
const SECRET_FIELD =
  /(\\*"[\w-]*(?:api_?key|access_?key|token|secret|password|passwd|authorization|cookie|credentials?)\\*"\s*:\s*\\*")[^"\\]+/gi

/** Makes what may stand in a file, the same in every recording of the same run, from what was said. */
export class Cleaner {
  private readonly ids: IdTokens
  private readonly redact: Redact | undefined
  /** Most of a request was in the one before. */
  private readonly known: Map<string, string> = new Map()
  private readonly times: Map<string, string> = new Map()

  constructor(ids: IdTokens, redact?: Redact) {
    this.ids = ids
    this.redact = redact
  }

  /** Without secrets and without ids of ours. */
  answer(value: Json): Json {
    return mapped(value, (text) => this.text(text))
  }

  /** The same of a request: times in it are ours as well. */
  request(value: Json): Json {
    return mapped(value, (text) => this.withoutTimes(this.text(text)))
  }

  text(text: string): string {
    const hidden = this.ids.hide(text)
    const known = this.known.get(hidden)
    if (known !== undefined) return known
    const own = this.redact === undefined ? hidden : this.redact(hidden)
    const clean = withoutSecrets(own.replaceAll(SECRET_FIELD, `$1${SECRET_MARK}`), environmentSecrets())
    if (this.known.size >= MOST_KNOWN) this.known.clear()
    this.known.set(hidden, clean)
    return clean
  }

  private withoutTimes(text: string): string {
    return text.replaceAll(TIME, (time) => this.timeToken(time)).replaceAll(DURATION, '$1<duration>')
  }

  private timeToken(time: string): string {
    const token = this.times.get(time) ?? `<time:${this.times.size + 1}>`
    this.times.set(time, token)
    return token
  }
}

const MOST_KNOWN = 10_000
const TIME = /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)/g
/** As results of delegations tell them. */
const DURATION = /("(?:duration_ms|durationMs|totalDurationMs)":\s*|\*\*(?:Duration|Elapsed):\*\* |\bidle )\d+[sm]?/g

function mapped(value: Json, change: (text: string) => string, key = ''): Json {
  if (typeof value === 'string') return SECRET_KEY.test(key) && isSecret(value) ? SECRET_MARK : change(value)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((item) => mapped(item as Json, change))
  const cleaned: [string, Json][] = []
  const taken = new Set(Object.keys(value))
  for (const [name, item] of Object.entries(value)) {
    cleaned.push([FIELD.test(name) ? name : keyOf(change(name), name, taken), mapped(item as Json, change, name)])
  }
  return Object.fromEntries(cleaned)
}

/** A name of a field: ours must stay, whatever a function of the user's makes of texts. */
const FIELD = /^[a-zA-Z$]{1,20}$/

/** Keys stay apart: two marks stand for any text as one does. */
function keyOf(clean: string, name: string, taken: Set<string>): string {
  if (clean === name) return name
  let key = clean
  while (taken.has(key)) key += SECRET_MARK
  taken.add(key)
  return key
}

/** Words about a secret are none. */
function isSecret(value: string): boolean {
  return value !== '' && !/\s/.test(value)
}

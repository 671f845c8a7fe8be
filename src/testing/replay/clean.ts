import type { Json } from '../../core/base/json.ts'
import { Secrets } from '../../core/base/secrets/secrets.ts'
import { SECRET_MARK, withoutShapes } from '../../core/base/secrets/shapes.ts'
import { environmentSecrets } from '../../core/model/ai-sdk/known-secrets.ts'
import type { IdTokens } from './packed-request.ts'

export type Redact = (text: string) => string

const SECRET_KEY =
  /(?:(?:api|access|private|secret)[-_]?key|token|secret|password|passwd|passphrase|authorization|cookie|credentials?)$/i
/** Matches secret fields of an object inside a text. */
const SECRET_FIELD =
  /(\\*"[\w-]*(?:(?:api|access|private|secret)[-_]?key|token|secret|password|passwd|passphrase|authorization|cookie|credentials?)\\*"\s*:\s*\\*")[^"\\]+/gi

/** Makes values safe for a file and equal in every recording of the same run. */
export class Cleaner {
  private readonly ids: IdTokens
  private readonly redact: Redact | undefined
  /** Texts already cleaned: most of a request repeats the one before. */
  private readonly known: Map<string, string> = new Map()
  private readonly times: Map<string, string> = new Map()
  private readonly learned: Set<string> = new Set()
  /** The secrets to look for, and the values they came from. */
  private secrets: Secrets = new Secrets([])
  private values = ''

  constructor(ids: IdTokens, redact?: Redact) {
    this.ids = ids
    this.redact = redact
  }

  /** Adds values that must not appear in the file from now on. */
  learn(values: readonly string[]): void {
    for (const value of values) this.learned.add(value)
  }

  /** Cleans an answer: removes secrets and replaces our ids. */
  answer(value: Json): Json {
    return mapped(value, { text: (text) => this.text(text), name: (name) => this.name(name) })
  }

  /** Cleans a request, including times that we added. */
  request(value: Json): Json {
    return mapped(value, { text: (text) => this.withoutTimes(this.text(text)), name: (name) => this.name(name) })
  }

  text(text: string): string {
    const secrets = this.inUse()
    const hidden = this.ids.hide(text)
    const known = this.known.get(hidden)
    if (known !== undefined) return known
    const own = this.redact === undefined ? hidden : this.redact(hidden)
    const clean = withoutShapes(secrets.clean(own.replaceAll(SECRET_FIELD, `$1${SECRET_MARK}`)))
    if (this.known.size >= MOST_KNOWN) this.known.clear()
    this.known.set(hidden, clean)
    return clean
  }

  /** Cleans a key of an object. Field names stay, whatever a user's function does to texts. */
  private name(name: string): string {
    if (SHORT_NAME.test(name)) return name
    return FIELD.test(name) ? this.inUse().clean(name) : this.text(name)
  }

  private inUse(): Secrets {
    const all = [...environmentSecrets(), ...this.learned]
    const values = JSON.stringify(all)
    if (values === this.values) return this.secrets
    this.values = values
    this.secrets = new Secrets(all)
    this.known.clear()
    return this.secrets
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
/** Matches durations as results of delegations write them. */
const DURATION = /("(?:duration_ms|durationMs|totalDurationMs)":\s*|\*\*(?:Duration|Elapsed):\*\* |\bidle )\d+[sm]?/g

interface Change {
  text(text: string): string
  name(name: string): string
}

function mapped(value: Json, change: Change, key = ''): Json {
  if (typeof value === 'string') return SECRET_KEY.test(key) && isSecret(value) ? SECRET_MARK : change.text(value)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((item) => mapped(item as Json, change))
  const names = new Names(Object.keys(value))
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [
      names.free(change.name(name), name),
      mapped(item as Json, change, name),
    ]),
  )
}

/** Matches a field name, ours or a schema's. */
const FIELD = /^[a-zA-Z$]{1,20}$/
/** Names this short are never taken for secrets. */
const SHORT_NAME = /^[a-zA-Z$]{1,11}$/

/** Keeps keys distinct: a mark with a number stands for any text, as one without does. */
class Names {
  private readonly taken: Set<string>
  private readonly counts: Map<string, number> = new Map()

  constructor(names: readonly string[]) {
    this.taken = new Set(names)
  }

  free(clean: string, name: string): string {
    if (clean === name) return name
    let key = clean
    while (this.taken.has(key)) {
      const count = (this.counts.get(clean) ?? 1) + 1
      this.counts.set(clean, count)
      key = `${clean}${SECRET_MARK}#${count}`
    }
    this.taken.add(key)
    return key
  }
}

/** Tells whether a value is a secret; a text about secrets is not. */
function isSecret(value: string): boolean {
  return value !== '' && !/\s/.test(value)
}

// Numbers, times and names in words: one way for the whole page.

/** `812`, `4.1k`, `46.0k`, `212k`, `2.1M`. */
export function tokens(count: number): string {
  if (count < 1_000) return String(Math.round(count))
  if (count < 99_950) return `${(count / 1_000).toFixed(1)}k`
  if (count < 999_500) return `${Math.round(count / 1_000)}k`
  return `${(count / 1_000_000).toFixed(1)}M`
}

/** `0.1 s`, `5.6 s`, `12 s`, `6:42`, `31 min`, `2 h 10 min`, `3 d 4 h`. */
export function span(ms: number): string {
  const seconds = Math.max(0, ms) / 1_000
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`
  return longSpan(Math.round(seconds))
}

/** The same for a time that goes on: whole seconds, so that nothing flickers. */
export function spanSoFar(ms: number): string {
  return longSpan(Math.max(0, Math.floor(ms / 1_000)))
}

function longSpan(seconds: number): string {
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 20) return `${minutes}:${String(seconds % 60).padStart(2, '0')}`
  if (minutes < 60) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  if (hours < 48) return `${hours} h${minutes % 60 === 0 ? '' : ` ${minutes % 60} min`}`
  return `${Math.floor(hours / 24)} d${hours % 24 === 0 ? '' : ` ${hours % 24} h`}`
}

/** `$0.82`, `$0.004`; money that is not known is `unknown`, none is `—`. */
export function money(usd: number | null | undefined): string {
  if (usd === undefined || usd === 0) return '—'
  if (usd === null) return 'unknown'
  if (usd < 0.000_5) return '< $0.001'
  return usd < 0.01 ? `$${usd.toFixed(3)}` : `$${usd.toFixed(2)}`
}

/** `14:02:11`. */
export function clock(at: number): string {
  const time = new Date(at)
  return [time.getHours(), time.getMinutes(), time.getSeconds()].map(twoDigits).join(':')
}

/** `14:02` today, `Mon 14:02` this week, `3 Nov 14:02` before. */
export function moment(at: number, now = Date.now()): string {
  const time = new Date(at)
  const short = `${twoDigits(time.getHours())}:${twoDigits(time.getMinutes())}`
  if (new Date(now).toDateString() === time.toDateString()) return short
  const isNear = now - at < 6 * 86_400_000
  const day = isNear ? DAYS[time.getDay()] : `${time.getDate()} ${MONTHS[time.getMonth()]}`
  return `${day} ${short}`
}

const DAYS = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat']
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

function twoDigits(value: number): string {
  return String(value).padStart(2, '0')
}

/** `1 agent`, `3 agents`. */
export function count(number: number, one: string, many = `${one}s`): string {
  return `${number.toLocaleString('en')} ${number === 1 ? one : many}`
}

/** `fixer`, `fixer and writer`, `fixer, reconciler and writer`, `fixer, reconciler and 6 more`. */
export function listOf(names: readonly string[]): string {
  if (names.length > 4) return `${names.slice(0, 2).join(', ')} and ${names.length - 2} more`
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`
}

/** `214 B`, `2.1 kB`, `214 kB`, `3.0 MB`. */
export function size(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`
  if (bytes < 10_000) return `${(bytes / 1_000).toFixed(1)} kB`
  return bytes < 1_000_000 ? `${Math.round(bytes / 1_000)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`
}

/** Ids show their last 8 characters. */
export function shortId(id: string): string {
  return id.slice(-8)
}

/** The name of a model without its provider: `claude-sonnet-5`. */
export function modelName(id: string): string {
  return id.slice(id.lastIndexOf('/') + 1)
}

/** Two letters for a round or square sign. */
export function initials(name: string): string {
  return name.slice(0, 2)
}

/** All that was used, input and output. */
export function total({ inputTokens, outputTokens }: { readonly inputTokens: number; readonly outputTokens: number }) {
  return inputTokens + outputTokens
}

/** Items by their key, in the order of their first ones. */
export function groupBy<Item>(items: readonly Item[], keyOf: (item: Item) => string): Map<string, Item[]> {
  const groups = new Map<string, Item[]>()
  for (const item of items) {
    const key = keyOf(item)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [item])
    else group.push(item)
  }
  return groups
}

// Writes numbers for people: durations, ages, counts, money and moments.
//
// Owns:      their units, and how exact each of them is.
// Called by: everything in `cli` that shows a number.
// Must stay true:
//   - The width of an amount hardly changes while it grows, so that columns stay in place.

/** Formats a duration: `0.4 s`, `12 s`, `3m 05s`, `2h 10m`, `3d 4h`. */
export function duration(ms: number): string {
  const seconds = Math.max(0, ms) / 1000
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`
  if (seconds < 59.5) return `${Math.round(seconds)} s`
  const whole = Math.round(seconds)
  if (whole < 3_600) return `${Math.floor(whole / 60)}m ${two(whole % 60)}s`
  const minutes = Math.floor(whole / 60)
  if (minutes < 1_440) return `${Math.floor(minutes / 60)}h ${two(minutes % 60)}m`
  return `${Math.floor(minutes / 1_440)}d ${Math.floor((minutes % 1_440) / 60)}h`
}

/** Formats an age: `12 s`, `3 min`, `2 h`, `5 d`. */
export function age(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min`
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h`
  return `${Math.floor(seconds / 86_400)} d`
}

/** Formats a count: `950`, `12.3k`, `1.2M`. */
export function count(value: number): string {
  if (value < 1_000) return String(value)
  if (value < 999_950) return `${(value / 1_000).toFixed(value < 99_950 ? 1 : 0)}k`
  return `${(value / 1_000_000).toFixed(1)}M`
}

/** Formats dollars; amounts below a cent stay visible. */
export function money(usd: number): string {
  if (usd === 0) return '$0'
  if (usd < 0.0001) return '<$0.0001'
  return `$${usd.toFixed(usd < 0.01 ? 4 : 2)}`
}

/** Formats local date and time to the second. */
export function moment(at: number): string {
  const date = new Date(at)
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
}

export function plural(value: number, noun: string): string {
  return `${value} ${noun}${value === 1 ? '' : 's'}`
}

function two(value: number): string {
  return String(value).padStart(2, '0')
}

// The fixed loop that a delegation's CPU time is compared with. Whoever changes it makes all earlier ratios meaningless.
// It does what a delegation does, in small: many functions, rows of one shape, a map, texts, JSON and promises.

const FUNCTIONS = 96

/** Gives a function that does the fixed work so many times. */
export function referenceLoop(pause) {
  const parts = Array.from({ length: FUNCTIONS }, (_, at) => partOf(at))
  let round = 0
  const once = async () => {
    const seen = new Map()
    const row = { id: `row-${++round % 61}`, at: round % 1_000, text: 'as long as a short task' }
    let sum = 0
    for (let at = 0; at < FUNCTIONS; at++) {
      sum += parts[at](row, seen)
      if (at % 8 === 7) sum = JSON.parse(JSON.stringify({ row, sum: await sum, list: [at, sum] })).sum % 100_003
    }
    return sum
  }
  return async (times) => {
    for (let at = 0; at < times; at++) {
      await once()
      if (at % 16 === 15) await pause()
    }
  }
}

/** Each is a function of its own for the compiler, because its text differs. */
function partOf(at) {
  const text = `
    const made = { id: row.id + ':${at % 11}', kind: '${at % 3 === 0 ? 'task' : 'message'}', at: row.at + ${at}, edges: [row.at, ${at}] }
    if (made.at % ${(at % 7) + 2} === 0) seen.set(made.id, made)
    const before = seen.get(row.id + ':${(at + 4) % 11}')
    return (before === undefined ? made.at : before.at + before.edges.length) % 13 + made.kind.length`
  return new Function('row', 'seen', text)
}

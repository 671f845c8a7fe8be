/** Numbers from 0 to 1 that are the same for the same seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Where the seeds of a suite begin: LEGATE_SEED, to repeat one that failed, or anything. */
export function firstSeed(): number {
  const given = process.env['LEGATE_SEED']
  return given === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(given)
}

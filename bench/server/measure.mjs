// Times of one streamed answer, and what is made of many of them.

/** Posts a request, and takes the times of its first byte and of its end. */
export async function readStream(url, { headers, body }) {
  const begun = performance.now()
  const answer = await fetch(url, { method: 'POST', headers, body })
  if (!answer.ok) throw new Error(`${url}: ${answer.status} ${await answer.text()}`)
  let first
  for await (const _ of answer.body) first ??= performance.now() - begun
  return { first, whole: performance.now() - begun }
}

export function quantile(list, share) {
  return [...list].sort((a, b) => a - b)[Math.floor(list.length * share)] ?? Number.NaN
}

export function round(value) {
  return Math.round(value * 10) / 10
}

import { agent } from 'legate'
import { scriptedModel } from 'legate/testing'

/** An agent that says nothing until it is told to. */
export function patient() {
  let go: () => void = () => undefined
  const gate = new Promise<void>((resolve) => {
    go = resolve
  })
  const slow = agent({
    name: 'patient',
    instructions: 'Wait.',
    model: scriptedModel(async () => {
      await gate
      return { text: 'At last.' }
    }),
  })
  return { slow, go: () => go() }
}

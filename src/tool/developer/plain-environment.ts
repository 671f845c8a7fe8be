/** Ours, without what looks like a secret: a model or a file decides what is done with it. */
export function plainEnvironment(): Record<string, string> {
  const entries = Object.entries(process.env).filter(
    ([name]) => !SECRET.test(name) && name !== 'PWD' && name !== 'OLDPWD',
  )
  return Object.fromEntries(entries.flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const])))
}

const SECRET = /KEY|SECRET|TOKEN|PASSWORD|PASSWD|CREDENTIAL|AUTH|COOKIE|SESSION/i

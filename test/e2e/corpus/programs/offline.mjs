// Loaded with --import: no name but this machine's own is found, so nothing leaves it.
import dns from 'node:dns'
import { syncBuiltinESMExports } from 'node:module'

const { lookup } = dns
dns.lookup = (host, ...rest) => {
  if (host === 'localhost' || host === '127.0.0.1') return lookup(host, ...rest)
  const answer = rest.at(-1)
  const error = Object.assign(new Error(`getaddrinfo ENOTFOUND ${host}`), { code: 'ENOTFOUND', hostname: host })
  setImmediate(() => answer(error))
}
syncBuiltinESMExports()

const WORKSPACE = '/workspace'

/**
 * A path pattern of another program, whose star also stands for slashes, as patterns of ours, whose star does not. To
 * forbid, it may match more; to allow, it may match less; never the other way round.
 */
export function filePatterns(pattern: string, purpose: 'allow' | 'restrict'): string[] {
  const bare = pattern.replace(/^\.\//, '').replace(/^~(?=\/)/, '/home')
  if (bare === '' || bare === '*' || bare === '**') return ['**']
  const place = bare.startsWith('/') ? bare : `${WORKSPACE}/${bare}`
  if (!bare.includes('*')) return [place, `${place}/**`]
  if (/^\*\.[\w.-]+$/.test(bare)) return [`${WORKSPACE}/**/${bare}`]
  const ending = /^([^*]*)\/\*{1,2}$/.exec(place)
  if (ending !== null) return [`${ending[1]}/**`]
  if (purpose === 'allow') return [place]
  return [`${place.slice(0, place.slice(0, place.indexOf('*')).lastIndexOf('/'))}/**`]
}

/** `git:*` and `git *` are the same: the command, with or without more behind it. */
export function commandPatterns(pattern: string): string[] {
  const bare = pattern.trim()
  if (bare === '' || bare === '*') return ['*']
  const [, command] = /^(.*?)(?::\*| \*)$/.exec(bare) ?? []
  return command === undefined || command === '' ? [bare] : [command, `${command} *`]
}

/** `domain:example.com`, a host or an address: the host, for that is what is asked for. */
export function hostPatterns(pattern: string): string[] {
  const bare = pattern
    .trim()
    .replace(/^domain:/, '')
    .replace(/^[a-z]+:\/\//i, '')
  const host = bare.split('/', 1)[0] ?? ''
  return [host === '' ? '*' : host]
}

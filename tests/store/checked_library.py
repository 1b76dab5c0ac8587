"""Check the arguments of each Redis command of the function library: numbers must have the format of Redis.

A Lua number is taken where Redis writes all its digits. Text is taken unless a word of it is a number in a notation
that HINCRBY refuses: -0, nan, inf, or one with an exponent.
"""

from __future__ import annotations

from functools import cache

from services.store.redis.library import source

FETCH = "  call = redis.call\n"
CHECK = """
local function check_argument(command, value)
  local bad
  if type(value) == 'number' then
    bad = value % 1 ~= 0 or math.abs(value) >= 1e14 or (value == 0 and 1 / value < 0)
  elseif #value < 200 then
    for word in string.gmatch(string.lower(value), '%S+') do
      local is_range_end = word == '-inf' or word == '+inf'
      bad = bad or word == '-0' or string.find(word, '^-?nan$') or string.find(word, '^-?inf$') and not is_range_end
        or string.find(word, '^-?%d+%.?%d*e[+-]?%d+$')
    end
  end
  if bad then error('a number that Redis would not read: ' .. command .. ' ' .. tostring(value)) end
end

local function checked_call(command, ...)
  for i = 1, select('#', ...) do check_argument(command, (select(i, ...))) end
  return redis.call(command, ...)
end
"""
NUM = "redis.register_function{ function_name = 'num', callback = function(_, A) return num(tonumber(A[1])) end }\n"


@cache
def checked_source() -> str:
    """Return the library's code with checks, and with its own formatter of numbers as the function `num`."""
    code = source()
    assert FETCH in code
    head, _, rest = code.partition("\n")
    return f"{head}\n{CHECK}{rest.replace(FETCH, '  call = checked_call' + chr(10))}\n{NUM}"

#!lua name=baseline
-- The prototype that the store's design was chosen with, kept as a yardstick: it checks less and does less than the
-- store (no commit, dead letters, deadlines, expiry, bounds of memory, index of lots). Never used by anything else.
-- KEYS 1 s stream of entries (n, b)  2 q queue hash  3 l lots  4 r returned (ZSET)  5 f redelivered  6 m settled masks
--      7 ses sessions  8 lane replies of this session  9 epoch  10 d dead stream.   ARGV 1 epoch  2 session  3 sequence ...
local function num(x) return string.format('%.0f',x) end
local W=64
local function enter(K,A)
  local call=redis.call
  if call('GET',K[9])~=A[1] then return {err='EPOCH dataset changed'} end
  if not call('ZSCORE',K[7],A[2]) then return {err='SESSION swept'} end
  local last=tonumber(call('HGET',K[8],'n') or 0) local seq=tonumber(A[3])
  if seq<=last then
    local r=call('HGET',K[8],num(seq%W)) if not r or seq<=last-W then return {err='TOOLATE'} end
    return nil,cmsgpack.unpack(r)
  end
  if seq~=last+1 then return {err='GAP '..num(last)} end
end
local function leave(K,A,rep) redis.call('HSET',K[8],'n',A[3],num(tonumber(A[3])%W),cmsgpack.pack(rep)) return rep end
local function eid(e) return '1-'..num(e) end
local function slice(blob,from,k)
  local p,byte=1,string.byte
  for j=1,from do local a,b,c,d=byte(blob,p,p+3) p=p+4+((a*256+b)*256+c)*256+d end
  local q=p
  for j=1,k do local a,b,c,d=byte(blob,q,q+3) q=q+4+((a*256+b)*256+c)*256+d end
  return string.sub(blob,p,q-1)
end
local function seqof(id) return tonumber(string.sub(id,string.find(id,'-',1,true)+1)) end
local function pub(K,A)  -- then n bytes blob ...
  local err,old=enter(K,A) if err then return err end if old then return old end
  local call=redis.call
  local h=call('HMGET',K[2],'len','max') local len,max=tonumber(h[1] or 0),tonumber(h[2] or 1e15)
  local n,b,rep=0,0,{}
  for i=4,#A,3 do
    local k=tonumber(A[i])
    if len+n+k>max then rep[#rep+1]='' else
      rep[#rep+1]=call('XADD',K[1],'1-*','n',A[i],'b',A[i+2]) n=n+k b=b+A[i+1] end
  end
  call('HINCRBY',K[2],'added',n) call('HINCRBY',K[2],'len',n) call('HINCRBY',K[2],'bytes',b)
  return leave(K,A,rep)
end
local function take(K,A) -- want
  local err,old=enter(K,A) if err then return err end
  if old then return {'REPLAY',old} end -- real: rebuild from lot
  local call=redis.call
  local want=tonumber(A[4])
  local h=call('HMGET',K[2],'ce','ci','lot') local ce,ci,lot=tonumber(h[1] or -1),tonumber(h[2] or 0),tonumber(h[3] or 0)
  local o,got={},0
  local z=call('ZPOPMIN',K[4],want)
  if #z>0 then
    lot=lot+1
    local keys={} for i=1,#z,2 do keys[#keys+1]=z[i] end
    local fs=call('HMGET',K[5],unpack(keys))
    local hs,rec={}, {}
    local pe,pent
    for i=1,#keys do
      local k=tonumber(keys[i]) local idx=k%32 local e=(k-idx)/32
      if e~=pe then pent=call('XRANGE',K[1],eid(e),eid(e))[1] pe=e end
      local f=pent[2]
      local acq,fail=string.match(fs[i],'^%d+ (%d+) (%d+)')
      hs[#hs+1]=keys[i] hs[#hs+1]=num(lot)..' '..num(acq+1)..' '..fail
      local y=#o o[y+1]=num(lot) o[y+2]=pent[1] o[y+3]=tonumber(f[2]) o[y+4]=idx o[y+5]=1 o[y+6]=slice(f[4],idx,1)
    end
    call('HSET',K[5],unpack(hs))
    call('HSET',K[3],num(lot),A[2]..' '..#keys..' R '..table.concat(keys,' '))
    got=#keys
  end
  if got<want then
    local start=(ce<0 and '0-0') or (ci>0 and eid(ce)) or '('..eid(ce)
    local fn,le,li,first,ln=0
    local L=num(lot+1)
    local cnt=math.ceil((want-got)/32)+1
    while got<want do
      local e=call('XRANGE',K[1],start,'+','COUNT',cnt)
      for i=1,#e do
        if got>=want then break end
        local id,f=e[i][1],e[i][2] local n,from,s=tonumber(f[2]),0,seqof(id)
        if ci>0 and s==ce then from=ci end
        local k=n-from if k>want-got then k=want-got end
        local y=#o o[y+1]=L o[y+2]=id o[y+3]=n o[y+4]=from o[y+5]=k
        if from>0 or k<n then o[y+6]=slice(f[4],from,k) else o[y+6]=f[4] end
        if not first then first=num(s)..' '..from end
        got=got+k fn=fn+k le=s li=from+k ln=n
      end
      if #e<cnt then break end
      start='('..e[#e][1] cnt=want-got
    end
    if first then
      lot=lot+1
      call('HSET',K[3],L,A[2]..' '..fn..' F '..first..' '..num(le)..' '..li)
      if li>=ln then li=0 end
      call('HSET',K[2],'ce',num(le),'ci',li)
    end
  end
  if got>0 then call('HSET',K[2],'lot',num(lot)) call('HINCRBY',K[2],'delivered',got) call('HINCRBY',K[2],'leased',got) end
  leave(K,A,{num(lot)})
  return o
end
local function popc(m) local c=0 for i=0,31 do if bit.band(m,bit.lshift(1,i))~=0 then c=c+1 end end return c end
local function settle(K,A) -- (lot,e,n,mask,bytes)* acks ; '|' ; (lot,e,idx,failed)* returns
  local err,old=enter(K,A) if err then return err end if old then return old end
  local call,bor,band,shl=redis.call,bit.bor,bit.band,bit.lshift
  local i,acks,rets=4,{},{}
  while A[i] and A[i]~='|' do acks[#acks+1]={A[i],A[i+1],tonumber(A[i+2]),bit.tobit(tonumber(A[i+3])),tonumber(A[i+4])} i=i+5 end
  i=i+1
  while A[i] do rets[#rets+1]={A[i],A[i+1],tonumber(A[i+2]),A[i+3]} i=i+4 end
  local lots={}
  local function lotok(L) local v=lots[L]
    if v==nil then local r=call('HGET',K[3],L)
      if r then local s,c,rest=string.match(r,'^(%S+) (%d+) (.*)$') v=(s==A[2]) and {tonumber(c),rest,0} or false else v=false end
      lots[L]=v end
    return v end
  local hasf=call('EXISTS',K[5])==1
  local del,hs,hd,fd={},{},{},{}
  local acked,bytes,fenced=0,0,0
  local mk={} for j=1,#acks do mk[j]=acks[j][2] end
  local masks=#mk>0 and call('HMGET',K[6],unpack(mk)) or {}
  local cur={}
  for j=1,#acks do
    local a=acks[j] local v=lotok(a[1]) local m=a[4]
    local bad=not v
    if v and hasf then
      local base=seqof(a[2])*32 local ks={} for b=0,31 do if band(m,shl(1,b))~=0 then ks[#ks+1]=num(base+b) end end
      local fv=call('HMGET',K[5],unpack(ks))
      for x=1,#ks do if fv[x] then if string.match(fv[x],'^%d+')==a[1] then fd[#fd+1]=ks[x] else bad=true end end end
    end
    local o=cur[a[2]] or (masks[j] and tonumber(masks[j])) or 0
    if band(o,m)~=0 then bad=true end
    local full=(a[3]==32) and -1 or bit.tobit(shl(1,a[3])-1)
    if not bad then
      if bor(o,m)==full then bad=call('XDEL',K[1],a[2])==0
      elseif o==0 then bad=#call('XRANGE',K[1],a[2],a[2])==0 end
    end
    if bad then fenced=fenced+popc(m) else
      local c=popc(m) acked=acked+c bytes=bytes+a[5] v[3]=v[3]+c
      cur[a[2]]=bor(o,m)
      if cur[a[2]]==full then del[#del+1]=a[2] if masks[j] then hd[#hd+1]=a[2] end else hs[a[2]]=cur[a[2]] end
    end
  end
  if #del>0 then for _,d in ipairs(del) do if hs[d] then hs[d]=nil hd[#hd+1]=d end end end
  if #hd>0 then call('HDEL',K[6],unpack(hd)) end
  local h2={} for e,m in pairs(hs) do h2[#h2+1]=e h2[#h2+1]=tostring(m) end
  if #h2>0 then call('HSET',K[6],unpack(h2)) end
  if #fd>0 then call('HDEL',K[5],unpack(fd)) end
  local returned=0
  for j=1,#rets do
    local a=rets[j] local v=lotok(a[1]) local k=num(seqof(a[2])*32+a[3])
    local f=call('HGET',K[5],k)
    local m=tonumber(call('HGET',K[6],a[2]) or 0)
    if not v or (f and string.match(f,'^%d+')~=a[1]) or band(m,shl(1,a[3]))~=0 or #call('XRANGE',K[1],a[2],a[2])==0 then fenced=fenced+1 else
      local acq,fail=1,0 if f then acq,fail=string.match(f,'^%d+ (%d+) (%d+)') end
      call('HSET',K[5],k,'0 '..acq..' '..num(fail+a[4]))
      call('ZADD',K[4],k,k) returned=returned+1 v[3]=v[3]+1
    end
  end
  for L,v in pairs(lots) do if v then local left=v[1]-v[3]
    if left<=0 then call('HDEL',K[3],L) elseif v[3]>0 then call('HSET',K[3],L,A[2]..' '..left..' '..v[2]) end end end
  if acked>0 then call('HINCRBY',K[2],'acked',acked) call('HINCRBY',K[2],'len',-acked) call('HINCRBY',K[2],'bytes',-bytes) end
  if returned>0 then call('HINCRBY',K[2],'returned',returned) end
  if acked+returned>0 then call('HINCRBY',K[2],'leased',-(acked+returned)) end
  if fenced>0 then call('HINCRBY',K[2],'fenced',fenced) end
  return leave(K,A,{acked,returned,fenced})
end
local function beat(K,A) -- sid deadline create?
  if A[3] then redis.call('ZADD',K[7],A[2],A[1]) return 1 end
  return redis.call('ZADD',K[7],'XX','CH',A[2],A[1])
end
redis.register_function('f_pub',pub)
redis.register_function{function_name='f_take',callback=take,flags={'allow-oom'}}
redis.register_function{function_name='f_settle',callback=settle,flags={'allow-oom'}}
redis.register_function{function_name='f_beat',callback=beat,flags={'allow-oom'}}

"""Correct programs of many kinds that look wrong somewhere: every rule stays quiet on each. Text of scripts; see `record`."""

from __future__ import annotations

HEAD = """\
import torch, copy, random
import torch.nn.functional as F
from torch import nn
torch.manual_seed(0)
def net(i=6,h=16,o=3): return nn.Sequential(nn.Linear(i,h),nn.ReLU(),nn.Linear(h,o))
def batch(n=16,i=6,c=3):
    x=torch.randn(n,i); return x,(x[:,:c]).argmax(1)
"""

INNOCENTS: dict[str, str] = {}
INNOCENTS["wgan_clip"] = """
G,D=net(4,16,6),net(6,16,1)
og=torch.optim.RMSprop(G.parameters(),1e-3); od=torch.optim.RMSprop(D.parameters(),1e-3)
for it in range(12):
    for _ in range(3):
        od.zero_grad()
        loss=-D(torch.randn(8,6)).mean()+D(G(torch.randn(8,4)).detach()).mean()
        loss.backward(); od.step()
        for p in D.parameters(): p.data.clamp_(-0.05,0.05)
    og.zero_grad()
    (-D(G(torch.randn(8,4))).mean()).backward()
    og.step()
"""
INNOCENTS["wgan_gp_one_minus"] = """
G,D=net(4,16,6),net(6,16,1)
og=torch.optim.Adam(G.parameters(),1e-3); od=torch.optim.Adam(D.parameters(),1e-3)
one=torch.tensor(1.0); mone=-one
for it in range(12):
    for p in D.parameters(): p.requires_grad=True
    for _ in range(2):
        D.zero_grad()
        D(torch.randn(8,6)).mean().backward(mone)
        fake=G(torch.randn(8,4)).detach()
        D(fake).mean().backward(one)
        x=fake.clone().requires_grad_(True)
        g=torch.autograd.grad(D(x).sum(),x,create_graph=True)[0]
        gp=((g.norm(dim=1)-1)**2).mean(); gp.backward()
        od.step()
    for p in D.parameters(): p.requires_grad=False
    G.zero_grad()
    D(G(torch.randn(8,4))).mean().backward(mone)
    og.step()
"""
INNOCENTS["dcgan_helper"] = """
G,D=net(4,16,6),net(6,16,1)
og=torch.optim.Adam(G.parameters(),1e-3); od=torch.optim.Adam(D.parameters(),1e-3)
bce=nn.BCEWithLogitsLoss()
def d_loss(x,label):
    loss=bce(D(x).squeeze(1),torch.full((len(x),),label)); loss.backward(); return loss
for it in range(15):
    D.zero_grad()
    d_loss(torch.randn(8,6),1.0)
    fake=G(torch.randn(8,4))
    d_loss(fake.detach(),0.0)
    od.step()
    G.zero_grad()
    bce(D(fake).squeeze(1),torch.ones(8)).backward()
    og.step()
"""
INNOCENTS["pcgrad"] = """
m=net(6,16,4); opt=torch.optim.Adam(m.parameters(),1e-3)
for it in range(12):
    x=torch.randn(16,6); out=m(x)
    losses=[F.mse_loss(out[:,:2],x[:,:2]),F.mse_loss(out[:,2:],x[:,2:4])]
    grads=[]
    for l in losses:
        opt.zero_grad()
        l.backward(retain_graph=True)
        grads.append([p.grad.clone() for p in m.parameters()])
    merged=[]
    for a,b in zip(*grads):
        dot=(a*b).sum()
        if dot<0: a=a-dot/(b.norm()**2+1e-9)*b
        merged.append(a+b)
    opt.zero_grad()
    for p,g in zip(m.parameters(),merged): p.grad=g
    opt.step()
"""
INNOCENTS["fomaml"] = """
m=net(); meta=torch.optim.Adam(m.parameters(),1e-3)
for it in range(8):
    meta.zero_grad()
    total=[torch.zeros_like(p) for p in m.parameters()]
    for t in range(3):
        fast=copy.deepcopy(m); inner=torch.optim.SGD(fast.parameters(),0.1)
        for _ in range(2):
            x,y=batch(); inner.zero_grad(); F.cross_entropy(fast(x),y).backward(); inner.step()
        x,y=batch(); inner.zero_grad(); F.cross_entropy(fast(x),y).backward()
        for s,p in zip(total,fast.parameters()): s.add_(p.grad/3)
    for p,s in zip(m.parameters(),total): p.grad=s
    meta.step()
"""
INNOCENTS["maml_second"] = """
w1=torch.randn(6,16,requires_grad=True); w2=torch.randn(16,3,requires_grad=True)
meta=torch.optim.Adam([w1,w2],1e-2)
def fwd(x,a,b): return torch.tanh(x@a)@b
for it in range(10):
    meta.zero_grad()
    loss=0
    for t in range(3):
        x,y=batch()
        g=torch.autograd.grad(F.cross_entropy(fwd(x,w1,w2),y),[w1,w2],create_graph=True)
        a,b=w1-0.1*g[0],w2-0.1*g[1]
        x,y=batch(); loss=loss+F.cross_entropy(fwd(x,a,b),y)
    (loss/3).backward(); meta.step()
"""
INNOCENTS["ewc_fisher"] = """
m=net(); opt=torch.optim.SGD(m.parameters(),0.05)
fisher=None; old=None
for task in range(3):
    for it in range(15):
        x,y=batch(); opt.zero_grad()
        loss=F.cross_entropy(m(x),y)
        if fisher: loss=loss+sum((f*(p-o)**2).sum() for f,p,o in zip(fisher,m.parameters(),old))
        loss.backward(); opt.step()
    fisher=[torch.zeros_like(p) for p in m.parameters()]
    for i in range(20):
        x,y=batch(1); m.zero_grad()
        F.cross_entropy(m(x),y).backward()
        for f,p in zip(fisher,m.parameters()): f+=p.grad**2/20
    old=[p.detach().clone() for p in m.parameters()]
"""
INNOCENTS["warmup_dummy"] = """
m=net(); opt=torch.optim.AdamW(m.parameters(),1e-3)
x,y=batch(); F.cross_entropy(m(x),y).backward(); opt.zero_grad(set_to_none=True)
for it in range(20):
    x,y=batch(); opt.zero_grad(); F.cross_entropy(m(x),y).backward(); opt.step()
"""
INNOCENTS["ppo_like"] = """
m=nn.ModuleDict(dict(pi=net(6,16,3),v=net(6,16,1))); opt=torch.optim.Adam(m.parameters(),3e-3)
for it in range(6):
    x=torch.randn(64,6); a=torch.randint(0,3,(64,)); ret=torch.randn(64)
    with torch.no_grad(): old=m['pi'](x).log_softmax(1)[range(64),a]; adv=ret-m['v'](x).squeeze(1)
    for ep in range(2):
        for idx in torch.randperm(64).split(16):
            lp=m['pi'](x[idx]).log_softmax(1)[range(16),a[idx]]
            r=(lp-old[idx]).exp()
            loss=-torch.min(r*adv[idx],r.clamp(.8,1.2)*adv[idx]).mean()+.5*F.mse_loss(m['v'](x[idx]).squeeze(1),ret[idx])
            opt.zero_grad(); loss.backward(); nn.utils.clip_grad_norm_(m.parameters(),.5); opt.step()
"""
INNOCENTS["sac_like"] = """
pi,q,qt=net(6,16,2),net(8,16,1),net(8,16,1); qt.load_state_dict(q.state_dict())
for p in qt.parameters(): p.requires_grad=False
la=torch.zeros(1,requires_grad=True)
op,oq,oa=torch.optim.Adam(pi.parameters(),1e-3),torch.optim.Adam(q.parameters(),1e-3),torch.optim.Adam([la],1e-3)
for it in range(20):
    s,a,r=torch.randn(16,6),torch.randn(16,2),torch.randn(16)
    with torch.no_grad(): t=r+.9*qt(torch.cat([s,pi(s)],1)).squeeze(1)
    oq.zero_grad(); F.mse_loss(q(torch.cat([s,a],1)).squeeze(1),t).backward(); oq.step()
    op.zero_grad(); (-q(torch.cat([s,pi(s)],1)).mean()+la.exp().detach()*pi(s).pow(2).mean()).backward(); op.step()
    oa.zero_grad(); (-(la.exp()*(pi(s).pow(2).mean()-1).detach())).sum().backward(); oa.step()
    with torch.no_grad():
        for a_,b_ in zip(qt.parameters(),q.parameters()): a_.mul_(.99).add_(.01*b_)
"""
INNOCENTS["d_skip"] = """
random.seed(1)
G,D=net(4,16,6),net(6,16,1)
og=torch.optim.Adam(G.parameters(),1e-3); od=torch.optim.Adam(D.parameters(),1e-3)
bce=nn.BCEWithLogitsLoss()
for it in range(40):
    od.zero_grad(); fake=G(torch.randn(8,4))
    ld=bce(D(torch.randn(8,6)),torch.ones(8,1))+bce(D(fake.detach()),torch.zeros(8,1)); ld.backward()
    if random.random()<0.7: od.step()
    og.zero_grad(); bce(D(fake),torch.ones(8,1)).backward(); og.step()
"""
INNOCENTS["one_scaler_gan"] = """
G,D=net(4,16,6),net(6,16,1)
og=torch.optim.Adam(G.parameters(),1e-3); od=torch.optim.Adam(D.parameters(),1e-3)
bce=nn.BCEWithLogitsLoss(); sc=torch.amp.GradScaler("cpu",init_scale=1024.)
for it in range(12):
    od.zero_grad()
    with torch.autocast("cpu",dtype=torch.bfloat16):
        fake=G(torch.randn(8,4)); ld=bce(D(torch.randn(8,6)).float(),torch.ones(8,1))+bce(D(fake.detach()).float(),torch.zeros(8,1))
    sc.scale(ld).backward(); sc.step(od)
    og.zero_grad()
    with torch.autocast("cpu",dtype=torch.bfloat16): lg=bce(D(fake).float(),torch.ones(8,1))
    sc.scale(lg).backward(); sc.step(og); sc.update()
"""
INNOCENTS["amp_accumulate"] = """
m=net(); opt=torch.optim.AdamW(m.parameters(),1e-3); sc=torch.amp.GradScaler("cpu",init_scale=2.**16)
opt.zero_grad()
for i in range(32):
    x,y=batch()
    with torch.autocast("cpu",dtype=torch.bfloat16): loss=F.cross_entropy(m(x).float(),y)/4
    sc.scale(loss).backward()
    if (i+1)%4==0:
        sc.unscale_(opt); nn.utils.clip_grad_norm_(m.parameters(),1.0); sc.step(opt); sc.update(); opt.zero_grad()
"""
INNOCENTS["amp_deep_scale"] = """
m=net(); opt=torch.optim.AdamW(m.parameters(),1e-3); sc=torch.amp.GradScaler("cpu",init_scale=2.**10)
for i in range(16):
    x,y=batch(); out=m(x)
    l1,l2=F.cross_entropy(out,y),out.pow(2).mean()
    opt.zero_grad(); s1=sc.scale(l1); s2=sc.scale(l2); (0.5*s2+s1).backward(); sc.step(opt); sc.update()
"""
INNOCENTS["amp_first_skips"] = """
m=net(); opt=torch.optim.SGD(m.parameters(),1e-2); sc=torch.amp.GradScaler("cpu",init_scale=2.**127)
sch=torch.optim.lr_scheduler.StepLR(opt,5)
for i in range(30):
    x,y=batch(); opt.zero_grad(); sc.scale(F.cross_entropy(m(x),y)).backward(); sc.step(opt); sc.update(); sch.step()
"""
INNOCENTS["nan_guard"] = """
m=net(); opt=torch.optim.Adam(m.parameters(),1e-2)
for i in range(20):
    x,y=batch()
    if i in (5,11): x[0,0]=float("nan")
    opt.zero_grad(); loss=F.cross_entropy(m(x),y); loss.backward()
    n=nn.utils.clip_grad_norm_(m.parameters(),1.0)
    if not torch.isfinite(n): continue
    opt.step()
"""
INNOCENTS["spike_skip"] = """
m=net(); opt=torch.optim.Adam(m.parameters(),1e-2)
for i in range(60):
    x,y=batch()
    if i%13==7: x*=30
    opt.zero_grad(); loss=F.cross_entropy(m(x),y); loss.backward()
    n=nn.utils.clip_grad_norm_(m.parameters(),1.0)
    if n>3: continue
    opt.step()
"""
INNOCENTS["multitask_loop"] = """
trunk=net(6,16,8); heads=nn.ModuleList([nn.Linear(8,1) for _ in range(4)])
opt=torch.optim.Adam([*trunk.parameters(),*heads.parameters()],1e-3)
for i in range(20):
    x=torch.randn(16,6); h=trunk(x); opt.zero_grad()
    for k,head in enumerate(heads):
        F.mse_loss(head(h).squeeze(1),x[:,k]).backward(retain_graph=True)
    opt.step()
"""
INNOCENTS["alternating_heads"] = """
trunk=net(6,16,8); heads=nn.ModuleList([nn.Linear(8,1) for _ in range(3)])
opt=torch.optim.Adam([*trunk.parameters(),*heads.parameters()],1e-3)
for i in range(30):
    x=torch.randn(16,6); k=i%3
    opt.zero_grad(); F.mse_loss(heads[k](trunk(x)).squeeze(1),x[:,k]).backward(); opt.step()
"""
INNOCENTS["optim_list"] = """
enc,dec=net(6,16,4),net(4,16,6)
opts=[torch.optim.Adam(enc.parameters(),1e-3),torch.optim.SGD(dec.parameters(),1e-2)]
for i in range(20):
    x=torch.randn(16,6)
    for o in opts: o.zero_grad()
    F.mse_loss(dec(enc(x)),x).backward()
    for o in opts: o.step()
"""
INNOCENTS["unfreeze_later"] = """
m=net()
for p in m[0].parameters(): p.requires_grad=False
opt=torch.optim.Adam([p for p in m.parameters() if p.requires_grad],1e-3)
for i in range(30):
    if i==15:
        for p in m[0].parameters(): p.requires_grad=True
        opt.add_param_group(dict(params=m[0].parameters(),lr=1e-4))
    x,y=batch(); opt.zero_grad(); F.cross_entropy(m(x),y).backward(); opt.step()
"""
INNOCENTS["perceptual"] = """
gen,vgg=net(6,16,6),net(6,16,8)
opt=torch.optim.Adam(gen.parameters(),1e-3)
for i in range(20):
    x=torch.randn(16,6); opt.zero_grad(); F.mse_loss(vgg(gen(x)),vgg(x)).backward(); opt.step()
"""
INNOCENTS["input_optim"] = """
m=net(); x=torch.randn(1,6,requires_grad=True); opt=torch.optim.Adam([x],0.1)
for i in range(20):
    opt.zero_grad(); (-m(x)[0,1]).backward(); opt.step()
"""
INNOCENTS["saliency"] = """
m=net().eval()
for i in range(8):
    x,_=batch(1); x.requires_grad_(True); m.zero_grad(); m(x)[0,1].backward(); s=x.grad.abs().max().item()
"""
INNOCENTS["gradcam"] = """
m=net().eval(); acts=[]; grads=[]
m[0].register_full_backward_hook(lambda mod,gi,go: grads.append(go[0].mean().item()))
for i in range(8):
    x,_=batch(4); m.zero_grad(); m(x)[:,1].sum().backward()
"""
INNOCENTS["lbfgs_minibatch_closure"] = """
m=net(); opt=torch.optim.LBFGS(m.parameters(),max_iter=5)
data=[batch() for _ in range(4)]
def closure():
    opt.zero_grad(); tot=0.
    for x,y in data:
        l=F.cross_entropy(m(x),y)/4; l.backward(); tot+=l.item()
    return torch.tensor(tot)
for r in range(4): opt.step(closure)
"""
INNOCENTS["sgd_closure"] = """
m=net(); opt=torch.optim.SGD(m.parameters(),0.1)
for r in range(15):
    x,y=batch()
    def closure():
        opt.zero_grad(); l=F.cross_entropy(m(x),y); l.backward(); return l
    opt.step(closure)
"""
INNOCENTS["sam_class"] = """
class SAM(torch.optim.Optimizer):
    def __init__(self,params,base,rho=.05,**kw):
        super().__init__(params,dict(rho=rho,**kw)); self.base=base(self.param_groups,**kw); self.param_groups=self.base.param_groups
    @torch.no_grad()
    def first_step(self,zero_grad=False):
        n=torch.stack([p.grad.norm() for g in self.param_groups for p in g["params"]]).norm()
        for g in self.param_groups:
            for p in g["params"]:
                self.state[p]["old"]=p.data.clone(); p.add_(p.grad*(0.05/(n+1e-12)))
        if zero_grad: self.zero_grad()
    @torch.no_grad()
    def second_step(self,zero_grad=False):
        for g in self.param_groups:
            for p in g["params"]: p.data=self.state[p]["old"]
        self.base.step()
        if zero_grad: self.zero_grad()
    def step(self,closure=None): raise NotImplementedError
m=net(); opt=SAM(m.parameters(),torch.optim.SGD,lr=.1,momentum=.9)
for i in range(15):
    x,y=batch(); F.cross_entropy(m(x),y).backward(); opt.first_step(True); F.cross_entropy(m(x),y).backward(); opt.second_step(True)
"""
INNOCENTS["lookahead"] = """
m=net(); opt=torch.optim.SGD(m.parameters(),.1); slow=[p.detach().clone() for p in m.parameters()]
for i in range(20):
    x,y=batch(); opt.zero_grad(); F.cross_entropy(m(x),y).backward(); opt.step()
    if i%5==4:
        with torch.no_grad():
            for p,s in zip(m.parameters(),slow): s+=.5*(p-s); p.copy_(s)
"""
INNOCENTS["ema"] = """
m=net(); e=copy.deepcopy(m); opt=torch.optim.AdamW(m.parameters(),1e-3)
for i in range(20):
    x,y=batch(); F.cross_entropy(m(x),y).backward(); opt.step(); opt.zero_grad()
    with torch.no_grad():
        for a,b in zip(e.parameters(),m.parameters()): a.lerp_(b,.1)
"""
INNOCENTS["grad_noise"] = """
m=net(); opt=torch.optim.SGD(m.parameters(),.1)
for i in range(20):
    x,y=batch(); opt.zero_grad(); F.cross_entropy(m(x),y).backward()
    for p in m.parameters(): p.grad.add_(torch.randn_like(p.grad)*.01)
    opt.step()
"""
INNOCENTS["hand_average"] = """
m=net(); opt=torch.optim.SGD(m.parameters(),.1)
for i in range(8):
    opt.zero_grad()
    for k in range(4):
        x,y=batch(); F.cross_entropy(m(x),y).backward()
    for p in m.parameters(): p.grad/=4
    opt.step()
"""
INNOCENTS["hand_clip"] = """
m=net(); opt=torch.optim.SGD(m.parameters(),.1)
for i in range(20):
    x,y=batch(); opt.zero_grad(); F.cross_entropy(m(x),y).backward()
    for p in m.parameters(): p.grad.data.clamp_(-.01,.01)
    opt.step()
"""
INNOCENTS["zero_in_place"] = """
m=net(); opt=torch.optim.SGD(m.parameters(),.1,momentum=.9)
for i in range(20):
    x,y=batch(); F.cross_entropy(m(x),y).backward(); opt.step()
    for p in m.parameters(): p.grad.data.zero_()
"""
INNOCENTS["hand_adam"] = """
ws=[torch.randn(6,8,requires_grad=True),torch.randn(8,3,requires_grad=True)]
ms=[torch.zeros_like(w) for w in ws]; vs=[torch.zeros_like(w) for w in ws]
for i in range(1,25):
    x,y=batch(); F.cross_entropy(torch.tanh(x@ws[0])@ws[1],y).backward()
    with torch.no_grad():
        for w,a,v in zip(ws,ms,vs):
            a.mul_(.9).add_(.1*w.grad); v.mul_(.99).add_(.01*w.grad**2)
            w-=.01*a/(v.sqrt()+1e-8); w.grad.zero_()
"""
INNOCENTS["hand_data"] = """
ws=[torch.randn(6,8,requires_grad=True),torch.randn(8,3,requires_grad=True)]
for i in range(25):
    x,y=batch(); loss=F.cross_entropy(torch.relu(x@ws[0])@ws[1],y); loss.backward()
    for w in ws:
        w.data-=.1*w.grad.data; w.grad.data.zero_()
"""
INNOCENTS["tbptt"] = """
rnn,head=nn.RNN(4,8,batch_first=True),nn.Linear(8,1); ps=[*rnn.parameters(),*head.parameters()]
opt=torch.optim.Adam(ps,1e-2); h=None
for i in range(20):
    x=torch.randn(3,5,4); o,h=rnn(x,h); loss=F.mse_loss(head(o).squeeze(2),x.sum(2))
    opt.zero_grad(); loss.backward(); opt.step(); h=h.detach()
"""
INNOCENTS["reinforce_sum"] = """
pi=net(6,16,3); opt=torch.optim.Adam(pi.parameters(),1e-2)
for ep in range(10):
    lps=[]; R=[]
    for t in range(random.randint(5,9)):
        s=torch.randn(6); d=torch.distributions.Categorical(logits=pi(s)); a=d.sample(); lps.append(d.log_prob(a)); R.append(random.random())
    opt.zero_grad(); sum(-l*r for l,r in zip(lps,R)).backward(); opt.step()
"""
INNOCENTS["actor_critic_episode_backward"] = """
pi=net(6,16,3); opt=torch.optim.Adam(pi.parameters(),1e-2)
for ep in range(8):
    opt.zero_grad()
    for t in range(6):
        s=torch.randn(6); d=torch.distributions.Categorical(logits=pi(s)); a=d.sample(); (-d.log_prob(a)*random.random()).backward()
    opt.step()
"""
INNOCENTS["lr_warmup_cosine"] = """
m=net(); opt=torch.optim.AdamW(m.parameters(),1e-3)
sch=torch.optim.lr_scheduler.OneCycleLR(opt,1e-2,total_steps=60)
for i in range(60):
    x,y=batch(); opt.zero_grad(); F.cross_entropy(m(x),y).backward(); opt.step(); sch.step()
"""
INNOCENTS["cosine_to_zero"] = """
m=net(); opt=torch.optim.AdamW(m.parameters(),1e-3)
sch=torch.optim.lr_scheduler.CosineAnnealingLR(opt,T_max=40)
for i in range(40):
    x,y=batch(); opt.zero_grad(); F.cross_entropy(m(x),y).backward(); opt.step(); sch.step()
"""
INNOCENTS["param_group_lr0"] = """
m=net(); opt=torch.optim.SGD([dict(params=m[0].parameters(),lr=0.),dict(params=m[2].parameters(),lr=.1)],lr=.1)
for i in range(20):
    x,y=batch(); opt.zero_grad(); F.cross_entropy(m(x),y).backward(); opt.step()
"""
INNOCENTS["tied"] = """
class LM(nn.Module):
    def __init__(s):
        super().__init__(); s.e=nn.Embedding(20,8); s.r=nn.GRU(8,8,batch_first=True); s.o=nn.Linear(8,20,bias=False); s.o.weight=s.e.weight
    def forward(s,x): return s.o(s.r(s.e(x))[0])
m=LM(); opt=torch.optim.Adam(m.parameters(),1e-2)
for i in range(20):
    x=torch.randint(0,20,(4,7)); opt.zero_grad(); F.cross_entropy(m(x)[:,:-1].flatten(0,1),x[:,1:].flatten()).backward(); opt.step()
"""
INNOCENTS["sparse"] = """
e=nn.Embedding(50,8,sparse=True); h=nn.Linear(8,3); oe,oh=torch.optim.SparseAdam(e.parameters(),1e-2),torch.optim.Adam(h.parameters(),1e-2)
for i in range(20):
    x=torch.randint(0,50,(16,)); oe.zero_grad(); oh.zero_grad(); F.cross_entropy(h(e(x)),x%3).backward(); oe.step(); oh.step()
"""
INNOCENTS["lstm_seq1"] = """
r,h=nn.LSTM(6,8,batch_first=True),nn.Linear(8,3); opt=torch.optim.Adam([*r.parameters(),*h.parameters()],1e-2)
for i in range(20):
    x,y=batch(); opt.zero_grad(); F.cross_entropy(h(r(x[:,None])[0][:,0]),y).backward(); opt.step()
"""
INNOCENTS["bn_frozen"] = """
m=nn.Sequential(nn.Linear(6,16),nn.BatchNorm1d(16),nn.ReLU(),nn.Dropout(.1),nn.Linear(16,3)); opt=torch.optim.Adam(m.parameters(),1e-3)
for i in range(20):
    m.train(); m[1].eval(); x,y=batch(); opt.zero_grad(); F.cross_entropy(m(x),y).backward(); opt.step()
"""
INNOCENTS["val_loop"] = """
m=nn.Sequential(nn.Linear(6,16),nn.BatchNorm1d(16),nn.ReLU(),nn.Dropout(.1),nn.Linear(16,3)); opt=torch.optim.Adam(m.parameters(),1e-3)
for ep in range(4):
    m.train()
    for i in range(6):
        x,y=batch(); opt.zero_grad(); F.cross_entropy(m(x),y).backward(); opt.step()
    m.eval()
    with torch.no_grad(): x,y=batch(); m(x)
"""
INNOCENTS["checkpoint"] = """
from torch.utils.checkpoint import checkpoint
a,b=net(6,16,6),net(6,16,3); opt=torch.optim.Adam([*a.parameters(),*b.parameters()],1e-3)
for i in range(15):
    x,y=batch(); opt.zero_grad(); F.cross_entropy(b(checkpoint(a,x,use_reentrant=False)),y).backward(); opt.step()
"""
INNOCENTS["dpsgd_microclip"] = """
m=net(); opt=torch.optim.SGD(m.parameters(),.1)
for i in range(8):
    acc=[torch.zeros_like(p) for p in m.parameters()]
    for k in range(6):
        x,y=batch(1); opt.zero_grad(); F.cross_entropy(m(x),y).backward(); nn.utils.clip_grad_norm_(m.parameters(),1.)
        for a,p in zip(acc,m.parameters()): a+=p.grad
    for p,a in zip(m.parameters(),acc): p.grad=a/6+torch.randn_like(a)*.01
    opt.step()
"""
INNOCENTS["clip_log_after"] = """
m=net(); opt=torch.optim.SGD(m.parameters(),.1)
for i in range(15):
    x,y=batch(); opt.zero_grad(); F.cross_entropy(m(x),y).backward(); opt.step()
    n=nn.utils.clip_grad_norm_(m.parameters(),float("inf"))
"""
INNOCENTS["early_stop_mid"] = """
m=net(); opt=torch.optim.SGD(m.parameters(),.1)
for i in range(15):
    x,y=batch(); opt.zero_grad(); l=F.cross_entropy(m(x),y); l.backward(); opt.step()
    if l.item()<0.2: break
"""
INNOCENTS["rezero_gate"] = """
class B(nn.Module):
    def __init__(s): super().__init__(); s.f=net(6,16,6); s.a=nn.Parameter(torch.zeros(1))
    def forward(s,x): return x+s.a*s.f(x)
m=nn.Sequential(B(),B(),nn.Linear(6,3)); opt=torch.optim.Adam(m.parameters(),1e-3)
for i in range(20):
    x,y=batch(); opt.zero_grad(); F.cross_entropy(m(x),y).backward(); opt.step()
"""
INNOCENTS["sum_mse_big"] = """
m=net(6,16,1); opt=torch.optim.SGD(m.parameters(),1e-12)
for i in range(20):
    x=torch.randn(4000,6)*30; opt.zero_grad(); ((m(x).squeeze(1)-x.sum(1)*50)**2).sum().backward(); opt.step()
"""
INNOCENTS["darts"] = """
m=net(); alpha=torch.zeros(3,requires_grad=True); ow=torch.optim.SGD(m.parameters(),.05); oa=torch.optim.Adam([alpha],1e-2)
def loss(b): x,y=b; return F.cross_entropy(m(x)*alpha.softmax(0),y)
for i in range(20):
    oa.zero_grad(); loss(batch()).backward(); oa.step()
    ow.zero_grad(); loss(batch()).backward(); ow.step()
"""
INNOCENTS["accumulate_tail_drop"] = """
m=net(); opt=torch.optim.SGD(m.parameters(),.1)
for ep in range(3):
    opt.zero_grad()
    for i in range(12):
        x,y=batch(); (F.cross_entropy(m(x),y)/4).backward()
        if (i+1)%4==0: opt.step(); opt.zero_grad()
"""
INNOCENTS["vae"] = """
enc,dec=net(6,16,8),net(4,16,6); opt=torch.optim.Adam([*enc.parameters(),*dec.parameters()],1e-3)
for i in range(20):
    x=torch.rand(16,6); mu,lv=enc(x).chunk(2,1); z=mu+torch.randn_like(mu)*(lv/2).exp(); opt.zero_grad()
    (F.binary_cross_entropy_with_logits(dec(z),x,reduction="sum")-.5*(1+lv-mu**2-lv.exp()).sum()).backward(); opt.step()
"""
INNOCENTS["head_only_detach"] = """
back,head=net(6,16,8),nn.Linear(8,3); opt=torch.optim.SGD(head.parameters(),.1)
for i in range(20):
    x,y=batch(); opt.zero_grad(); F.cross_entropy(head(back(x).detach()),y).backward(); opt.step()
"""
INNOCENTS["two_phase"] = """
m=nn.ModuleDict(dict(a=net(6,16,8),b=nn.Linear(8,3),c=nn.Linear(8,6))); opt=torch.optim.Adam(m.parameters(),1e-3)
for i in range(20):
    x,y=batch(); opt.zero_grad(); F.mse_loss(m['c'](m['a'](x)),x).backward(); opt.step()
for i in range(20):
    x,y=batch(); opt.zero_grad(); F.cross_entropy(m['b'](m['a'](x)),y).backward(); opt.step()
"""
INNOCENTS["same_batch_overfit"] = """
m=net(); opt=torch.optim.Adam(m.parameters(),1e-3); x,y=batch()
for i in range(30):
    opt.zero_grad(); F.cross_entropy(m(x),y).backward(); opt.step()
"""

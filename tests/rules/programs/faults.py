"""Faulty programs beside their mended twins. In each, lines marked `#B` belong to the fault and lines marked `#F` to the twin."""

from __future__ import annotations

from typing import NamedTuple

from tests.rules.programs.innocents import HEAD


class Faulty(NamedTuple):
    """One program with a fault."""

    rules: set[str]
    """Any of these tells it."""
    code: str
    parameters: set[str] | None

    def script(self, faulty: bool) -> str:
        """The program, or its mended twin."""
        keep, drop = ("#B ", "#F ") if faulty else ("#F ", "#B ")
        return "\n".join(line.replace(keep, "", 1) for line in (HEAD + self.code).split("\n") if drop not in line)


FAULTS: dict[str, Faulty] = {}


def _case(name: str, rules: set[str], code: str, parameters: set[str] | None = None) -> None:
    FAULTS[name] = Faulty(rules, code, parameters)


_case(
    "wrong_model_zeroed",
    {"stale-gradient"},
    """
student,teacher=net(),net(); opt=torch.optim.SGD(student.parameters(),.05)
for i in range(20):
    x,y=batch()
    #B teacher.zero_grad()
    #F student.zero_grad()
    F.cross_entropy(student(x),y).backward(); opt.step()
""",
)
_case(
    "zero_once_per_epoch",
    {"stale-gradient"},
    """
m=net(); opt=torch.optim.SGD(m.parameters(),.05)
for ep in range(3):
    #B opt.zero_grad()
    for i in range(8):
        x,y=batch()
        #F opt.zero_grad()
        F.cross_entropy(m(x),y).backward()
        opt.step()
""",
)
_case(
    "epoch_start_discards_tail",
    {"gradient-discarded"},
    """
m=net(); opt=torch.optim.SGD(m.parameters(),.05)
for ep in range(4):
    #B opt.zero_grad()
    for i in range(1,11):
        x,y=batch(); (F.cross_entropy(m(x),y)/4).backward()
        #B if i%4==0:
        #F if i%4==0 or i==10:
            opt.step(); opt.zero_grad()
""",
)
_case(
    "step_before_backward",
    {"gradient-discarded", "step-without-gradient"},
    """
m=net(); opt=torch.optim.Adam(m.parameters(),.01)
for i in range(20):
    x,y=batch(); loss=F.cross_entropy(m(x),y)
    opt.zero_grad()
    #B opt.step()
    loss.backward()
    #F opt.step()
""",
)
_case(
    "no_backward",
    {"step-without-gradient"},
    """
m=net(); opt=torch.optim.Adam(m.parameters(),.01)
for i in range(20):
    x,y=batch(); loss=F.cross_entropy(m(x),y)
    opt.zero_grad()
    #F loss.backward()
    opt.step()
""",
)
_case(
    "no_step",
    {"gradient-discarded"},
    """
class T:
    def __init__(s): s.m=net(); s.opt=torch.optim.Adam(s.m.parameters(),.01)
    def update(s,x,y):
        s.opt.zero_grad()
        l=F.cross_entropy(s.m(x),y)
        l.backward()
        #F s.opt.step()
        return l.item()
t=T()
for i in range(20): t.update(*batch())
""",
)
_case(
    "double_step",
    {"step-repeats-gradient"},
    """
m=net(); opt=torch.optim.SGD(m.parameters(),.05)
for i in range(20):
    x,y=batch(); opt.zero_grad(); F.cross_entropy(m(x),y).backward()
    opt.step()
    #B opt.step()
""",
)
_case(
    "clip_before_backward",
    {"clip-without-gradient"},
    """
m=net(); opt=torch.optim.SGD(m.parameters(),.05)
for i in range(20):
    x,y=batch(); opt.zero_grad(); l=F.cross_entropy(m(x),y)
    #B nn.utils.clip_grad_norm_(m.parameters(),1.)
    l.backward()
    #F nn.utils.clip_grad_norm_(m.parameters(),1.)
    opt.step()
""",
)
_case(
    "clip_in_window",
    {"clip-inside-window"},
    """
m=net(); opt=torch.optim.SGD(m.parameters(),.05)
for i in range(1,25):
    x,y=batch(); (F.cross_entropy(m(x),y)/4).backward()
    #B nn.utils.clip_grad_norm_(m.parameters(),.5)
    if i%4==0:
        #F nn.utils.clip_grad_norm_(m.parameters(),.5)
        opt.step()
        opt.zero_grad()
""",
)
_case(
    "clip_encoder_only",
    {"clip-partial"},
    """
enc,dec=net(6,16,4),net(4,16,6); opt=torch.optim.SGD([*enc.parameters(),*dec.parameters()],.05)
for i in range(20):
    x=torch.randn(16,6); opt.zero_grad(); F.mse_loss(dec(enc(x)),x).backward()
    #B nn.utils.clip_grad_norm_(enc.parameters(),.1)
    #F nn.utils.clip_grad_norm_([*enc.parameters(),*dec.parameters()],.1)
    opt.step()
""",
)
_case(
    "unscale_each_micro",
    {"unscale-inside-window"},
    """
m=net(); opt=torch.optim.SGD(m.parameters(),.05); sc=torch.amp.GradScaler("cpu",init_scale=1024.)
for w in range(6):
    opt.zero_grad()
    for k in range(3):
        x,y=batch(); sc.scale(F.cross_entropy(m(x),y)/3).backward()
        #B if k==0: sc.unscale_(opt)
        #F if k==2: sc.unscale_(opt)
    nn.utils.clip_grad_norm_(m.parameters(),1.)
    sc.step(opt); sc.update()
""",
)
_case(
    "forgot_scale",
    {"unscaled-backward"},
    """
m=net(); opt=torch.optim.SGD(m.parameters(),.05); sc=torch.amp.GradScaler("cpu",init_scale=1024.)
for w in range(12):
    x,y=batch(); opt.zero_grad(); loss=F.cross_entropy(m(x),y)
    #B loss.backward()
    #F sc.scale(loss).backward()
    sc.step(opt); sc.update()
""",
)
_case(
    "nan_log_zero",
    {"nonfinite-gradient", "nonfinite-loss"},
    """
m=net(); opt=torch.optim.Adam(m.parameters(),.05)
for i in range(10):
    x,y=batch(); p=(m(x)*40).softmax(1)
    #B loss=-(p*torch.log(p)).sum(1).mean()+F.cross_entropy(m(x),y)
    #F loss=-(p*torch.log(p+1e-9)).sum(1).mean()+F.cross_entropy(m(x),y)
    opt.zero_grad(); loss.backward(); opt.step()
""",
)
_case(
    "deep_sigmoid",
    {"vanishing-gradient"},
    """
A=nn.ReLU
#B A=nn.Sigmoid
ls=[]
for _ in range(14): ls+= [nn.Linear(12,12),A()]
m=nn.Sequential(nn.Linear(6,12),*ls,nn.Linear(12,3)); opt=torch.optim.SGD(m.parameters(),.05)
for i in range(20):
    x,y=batch(); opt.zero_grad(); F.cross_entropy(m(x),y).backward(); opt.step()
""",
)
_case(
    "argmax_in_middle",
    {"owned-without-gradient"},
    """
class N(nn.Module):
    def __init__(s): super().__init__(); s.a=nn.Linear(6,8); s.e=nn.Embedding(8,8); s.b=nn.Linear(8,3)
    def forward(s,x):
        #B return s.b(s.e(s.a(x).argmax(1)))
        #F return s.b(s.a(x).softmax(1)@s.e.weight)
m=N(); opt=torch.optim.Adam(m.parameters(),.05)
for i in range(20):
    x,y=batch(); opt.zero_grad(); F.cross_entropy(m(x),y).backward(); opt.step()
""",
    {"m.a.weight", "m.a.bias"},
)
_case(
    "forgot_group",
    {"unowned-gradient"},
    """
class N(nn.Module):
    def __init__(s): super().__init__(); s.body=net(6,16,8); s.head=nn.Linear(8,3)
    def forward(s,x): return s.head(s.body(x))
m=N()
#B opt=torch.optim.Adam(m.body.parameters(),.05)
#F opt=torch.optim.Adam(m.parameters(),.05)
for i in range(20):
    x,y=batch(); opt.zero_grad(); F.cross_entropy(m(x),y).backward(); opt.step()
""",
    {"m.head.weight", "m.head.bias"},
)
_case(
    "plain_tensor_attribute",
    {"unregistered-parameter"},
    """
class N(nn.Module):
    def __init__(s):
        super().__init__(); s.f=net()
        #B s.scale=torch.ones(3,requires_grad=True)
        #F s.scale=nn.Parameter(torch.ones(3))
    def forward(s,x): return s.f(x)*s.scale
m=N(); opt=torch.optim.Adam(m.parameters(),.05)
for i in range(20):
    x,y=batch(); opt.zero_grad(); F.cross_entropy(m(x),y).backward(); opt.step()
""",
    {"m.scale"},
)
_case(
    "deepcopy_after_optimizer",
    {"stale-optimizer-parameters", "unowned-gradient"},
    """
m=net()
#B opt=torch.optim.Adam(m.parameters(),.05); m=copy.deepcopy(m)
#F m=copy.deepcopy(m); opt=torch.optim.Adam(m.parameters(),.05)
for i in range(20):
    x,y=batch(); opt.zero_grad(); F.cross_entropy(m(x),y).backward(); opt.step()
""",
)
_case(
    "tied_after_optimizer",
    {"stale-optimizer-parameters", "owned-without-gradient"},
    """
class LM(nn.Module):
    def __init__(s): super().__init__(); s.e=nn.Embedding(20,8); s.r=nn.GRU(8,8,batch_first=True); s.o=nn.Linear(8,20,bias=False)
    def forward(s,x): return s.o(s.r(s.e(x))[0])
m=LM()
#F m.o.weight=m.e.weight
opt=torch.optim.Adam(m.parameters(),1e-2)
#B m.o.weight=m.e.weight
for i in range(20):
    x=torch.randint(0,20,(4,7)); opt.zero_grad(); F.cross_entropy(m(x)[:,:-1].flatten(0,1),x[:,1:].flatten()).backward(); opt.step()
""",
)
_case(
    "head_drifts",
    {"moves-without-gradient"},
    """
trunk=net(6,16,8); heads=nn.ModuleList([nn.Linear(8,1) for _ in range(2)])
opt=torch.optim.Adam([*trunk.parameters(),*heads.parameters()],1e-2)
for i in range(40):
    x=torch.randn(16,6); k=int(i>=8)
    #B opt.zero_grad(set_to_none=False)
    #F opt.zero_grad()
    F.mse_loss(heads[k](trunk(x)).squeeze(1),x[:,k]).backward(); opt.step()
""",
)
_case(
    "retain_graph_growth",
    {"graph-retained"},
    """
cell,head=nn.RNNCell(4,8),nn.Linear(8,1); opt=torch.optim.SGD(head.parameters(),.01); cell.requires_grad_(True)
cell_opt=None
h=torch.zeros(3,8)
for i in range(15):
    x=torch.randn(3,4); h=cell(x,h); loss=(head(h)-1).pow(2).mean()
    opt.zero_grad()
    #B loss.backward(retain_graph=True)
    #F loss.backward()
    opt.step()
    #F h=h.detach()
""",
)
_case(
    "val_loss_backward",
    {"validation-backward"},
    """
m=nn.Sequential(nn.Linear(6,16),nn.Dropout(.1),nn.ReLU(),nn.Linear(16,3)); opt=torch.optim.Adam(m.parameters(),1e-2)
def run(x,y,train):
    m.train(train); l=F.cross_entropy(m(x),y)
    #B l.backward()
    #F if train: l.backward()
    if train: opt.step(); opt.zero_grad()
for ep in range(5):
    for i in range(4): run(*batch(),True)
    run(*batch(),False)
""",
)
_case(
    "attack_grads_leak",
    {"validation-backward", "accumulation-not-averaged", "mixed-gradient", "stale-gradient"},
    """
m=nn.Sequential(nn.Linear(6,16),nn.Dropout(.1),nn.ReLU(),nn.Linear(16,3)); opt=torch.optim.Adam(m.parameters(),1e-2)
for it in range(15):
    x,y=batch(); opt.zero_grad()
    m.eval(); d=torch.zeros_like(x,requires_grad=True); F.cross_entropy(m(x+d),y).backward(); adv=x+.1*d.grad.sign()
    m.train()
    #F opt.zero_grad()
    F.cross_entropy(m(adv),y).backward(); opt.step()
""",
)
_case(
    "adam_fp16",
    {"nonfinite-parameter"},
    """
m=net()
#B m=m.half()
opt=torch.optim.Adam(m.parameters(),1e-3)
for i in range(15):
    x,y=batch()
    x=x.to(m[0].weight.dtype)
    opt.zero_grad(); F.cross_entropy(m(x).float()*1e-3,y).backward(); opt.step()
""",
)
_case(
    "scheduler_per_batch",
    {"learning-rate-vanished"},
    """
m=net(); opt=torch.optim.SGD(m.parameters(),.1); sch=torch.optim.lr_scheduler.StepLR(opt,1,.1)
for ep in range(5):
    for i in range(12):
        x,y=batch(); opt.zero_grad(); F.cross_entropy(m(x),y).backward(); opt.step()
        #B sch.step()
    #F sch.step()
""",
)
_case(
    "scheduler_first",
    {"scheduler-before-optimizer"},
    """
m=net(); opt=torch.optim.SGD(m.parameters(),.1); sch=torch.optim.lr_scheduler.StepLR(opt,2,.5)
for ep in range(5):
    #B sch.step()
    for i in range(5):
        x,y=batch(); opt.zero_grad(); F.cross_entropy(m(x),y).backward(); opt.step()
    #F sch.step()
""",
)
_case(
    "sparse_adam",
    {"unsupported-gradient"},
    """
#B e=nn.Embedding(50,8,sparse=True)
#F e=nn.Embedding(50,8)
h=nn.Linear(8,3); opt=torch.optim.Adam([*e.parameters(),*h.parameters()],1e-2)
for i in range(5):
    x=torch.randint(0,50,(16,)); opt.zero_grad(); F.cross_entropy(h(e(x)),x%3).backward(); opt.step()
""",
)
_case(
    "same_batch_window",
    {"same-gradient-again"},
    """
from torch.utils.data import DataLoader,TensorDataset
dl=DataLoader(TensorDataset(*batch(64)),batch_size=16)
m=net(); opt=torch.optim.SGD(m.parameters(),.1)
it=iter(dl)
for w in range(8):
    opt.zero_grad()
    for k in range(4):
        #B x,y=next(iter(dl))
        #F x,y=batch()
        (F.cross_entropy(m(x),y)/4).backward()
    opt.step()
""",
)
_case(
    "gan_left_behind",
    {"mixed-gradient", "stale-gradient"},
    """
G,D=net(4,16,6),net(6,16,1)
og=torch.optim.Adam(G.parameters(),1e-3); od=torch.optim.Adam(D.parameters(),1e-3); bce=nn.BCEWithLogitsLoss()
for it in range(15):
    og.zero_grad(); bce(D(G(torch.randn(8,4))),torch.ones(8,1)).backward(); og.step()
    #F od.zero_grad()
    fake=G(torch.randn(8,4)).detach()
    ld=bce(D(torch.randn(8,6)),torch.ones(8,1))+bce(D(fake),torch.zeros(8,1))
    ld.backward(); od.step()
    #B od.zero_grad()
""",
)
_case(
    "hook_scales_parameter",
    {"parameter-changed-in-backward"},
    """
m=net(); opt=torch.optim.SGD(m.parameters(),.05)
#B m[0].weight.register_hook(lambda g: (m[0].weight.data.mul_(.9),g)[1])
#F m[0].weight.register_hook(lambda g: g*.9)
for i in range(15):
    x,y=batch(); opt.zero_grad(); F.cross_entropy(m(x),y).backward(); opt.step()
""",
)
_case(
    "manual_zero_missing",
    {"stale-gradient"},
    """
w,b=torch.randn(6,3,requires_grad=True),torch.zeros(3,requires_grad=True)
for i in range(20):
    x,y=batch(); F.cross_entropy(x@w+b,y).backward()
    with torch.no_grad():
        for p in (w,b):
            p-=.1*p.grad
            #F p.grad.zero_()
""",
)
_case(
    "manual_one_not_zeroed",
    {"stale-gradient"},
    """
w,b=torch.randn(6,3,requires_grad=True),torch.zeros(3,requires_grad=True)
for i in range(20):
    x,y=batch(); F.cross_entropy(x@w+b,y).backward()
    w.data-=.1*w.grad; b.data-=.1*b.grad
    w.grad.data.zero_()
    #F b.grad.data.zero_()
""",
    {"b"},
)
_case(
    "freeze_by_flag_after",
    {"unowned-gradient", "owned-without-gradient"},
    """
m=net()
for p in m[0].parameters(): p.requires_grad=False
opt=torch.optim.Adam([p for p in m.parameters() if p.requires_grad],1e-2)
#F opt.add_param_group(dict(params=m[0].parameters()))
for i in range(24):
    if i==8:
        for p in m[0].parameters(): p.requires_grad=True
    x,y=batch(); opt.zero_grad(); F.cross_entropy(m(x),y).backward(); opt.step()
""",
)
_case(
    "lr_tiny_half",
    {"step-changes-nothing"},
    """
m=net()
#B m=m.to(torch.bfloat16)
opt=torch.optim.SGD(m.parameters(),1e-5)
for i in range(15):
    x,y=batch(); opt.zero_grad(); F.cross_entropy(m(x.to(m[0].weight.dtype)).float(),y).backward(); opt.step()
""",
)
_case(
    "loss_list_keeps_graph",
    {"graph-retained"},
    """
m=net(); opt=torch.optim.SGD(m.parameters(),.1); losses=[]
for i in range(15):
    x,y=batch(); opt.zero_grad(); loss=F.cross_entropy(m(x),y); loss.backward(); opt.step()
    #B losses.append(loss)
    #F losses.append(loss.item())
print(sum(losses)/len(losses))
""",
)
